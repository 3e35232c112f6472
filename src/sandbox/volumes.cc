#include "sandbox/volumes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/unlisted.h"

namespace atl::sandbox {

using Name = std::pair<store::TenantId, std::string>;

struct HeldVolume {
  store::VolumeRow row;
  Reservation reservation;                    // of disk
  std::multimap<SandboxId, bool> users = {};  // true: reads only
  bool leaving = false;                       // its removal is under way
};

struct VolumeTable {
  std::map<Name, HeldVolume> held;
  std::set<Name> coming;  // being made

  HeldVolume* find(const VolumeId& id) {
    for (auto& [key, volume] : held)
      if (volume.row.id == id) return &volume;
    return nullptr;
  }
};

namespace {

// A warden that died is back sooner than that.
constexpr int kMaxRemovals = 10;
constexpr std::chrono::milliseconds kRemovalPause{200};

// From the moment that it is made.
struct Coming {
  std::shared_ptr<VolumeTable> table;
  Name key;
  Coming(std::shared_ptr<VolumeTable> in, Name name) : table(std::move(in)), key(std::move(name)) {
    table->coming.insert(key);
  }
  ~Coming() { table->coming.erase(key); }
  Coming(const Coming&) = delete;
};

ShownVolume shown(const HeldVolume& held) {
  ShownVolume volume{held.row};
  volume.users.assign(held.users.begin(), held.users.end());
  return volume;
}

Error no_such_volume(const std::string& name) {
  return Error(Code::kNotFound, "there is no volume " + name).with_reason("volume_not_found");
}

Error in_use(const std::string& message) {
  return Error(Code::kConflict, message).with_reason("volume_in_use");
}

}  // namespace

VolumeClaim::VolumeClaim(std::weak_ptr<VolumeTable> table, const store::SandboxRow& row)
    : table_(std::move(table)), sandbox_(row.id), uses_(row.volumes) {
  auto all = table_.lock();
  for (const store::VolumeUse& use : uses_)
    if (HeldVolume* held = all ? all->find(use.volume) : nullptr)
      held->users.emplace(row.id, use.read_only);
}

VolumeClaim::VolumeClaim(VolumeClaim&& other) noexcept
    : table_(std::move(other.table_)),
      sandbox_(std::exchange(other.sandbox_, std::nullopt)),
      uses_(std::move(other.uses_)) {}

VolumeClaim& VolumeClaim::operator=(VolumeClaim&& other) noexcept {
  if (this == &other) return *this;
  release();
  table_ = std::move(other.table_);
  sandbox_ = std::exchange(other.sandbox_, std::nullopt);
  uses_ = std::move(other.uses_);
  return *this;
}

void VolumeClaim::release() {
  auto all = table_.lock();
  if (!all || !sandbox_) return;
  for (const store::VolumeUse& use : uses_) {
    HeldVolume* held = all->find(use.volume);
    if (held == nullptr) continue;
    auto user = held->users.find(*sandbox_);
    if (user != held->users.end()) held->users.erase(user);
  }
  sandbox_.reset();
}

std::vector<isolate::VolumePlace> places_of(const std::vector<store::VolumeUse>& uses) {
  using Access = isolate::VolumePlace::Access;
  std::vector<isolate::VolumePlace> places;
  for (const store::VolumeUse& use : uses)
    places.push_back({use.volume, use.path, use.read_only ? Access::kRead : Access::kWrite});
  return places;
}

bool is_volume_name(std::string_view text) {
  auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  auto is_allowed = [is_plain](char c) { return is_plain(c) || c == '-' || c == '_'; };
  return !text.empty() && text.size() <= kMaxVolumeNameBytes && is_plain(text[0]) &&
         std::all_of(text.begin(), text.end(), is_allowed) && !VolumeId::parse(text);
}

Volumes::Volumes(Services& services, Admission& admission)
    : services_(services), admission_(admission), table_(std::make_shared<VolumeTable>()) {}

Task<Result<store::VolumeRow>> Volumes::create(store::TenantId tenant, std::string name,
                                               uint64_t bytes) {
  Name key(tenant, name);
  if (table_->held.contains(key) || table_->coming.contains(key))
    co_return Error(Code::kConflict, "there is a volume of the name " + name)
        .with_reason("volume_exists")
        .with_field("name");
  auto is_of_tenant = [tenant](const auto& entry) { return entry.first.first == tenant; };
  auto count = std::count_if(table_->held.begin(), table_->held.end(), is_of_tenant);
  if (static_cast<size_t>(count) + table_->coming.size() >= kMaxVolumesOfTenant)
    co_return Error(Code::kExhausted, "the tenant has its full number of volumes")
        .with_reason("too_many_volumes");
  ATOLL_CO_TRY(Reservation reservation, admission_.reserve_disk(bytes, tenant));
  Coming coming(table_, key);
  store::VolumeRow row{.id = VolumeId::draw(), .tenant = tenant, .name = name, .bytes = bytes};
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  VolumeId id = row.id;
  Result<void> made = co_await services_.driver.create_volume(id, bytes);
  crash_point("volume.made");
  auto insert = [row](store::Catalog& catalog) { return catalog.volumes().insert(row); };
  if (made) made = co_await services_.ledger.run(insert);
  crash_point("volume.row");
  if (!made) {
    co_await remove_files(id);  // its answer may have been lost after it was made
    co_return std::move(made).error();
  }
  table_->held.emplace(key, HeldVolume{row, std::move(reservation)});
  co_return row;
}

Result<ShownVolume> Volumes::find(store::TenantId tenant, const std::string& name) const {
  auto found = table_->held.find(Name(tenant, name));
  if (found == table_->held.end() || found->second.leaving) return no_such_volume(name);
  return shown(found->second);
}

Result<ShownVolume> Volumes::find(VolumeId id) const {
  const HeldVolume* held = table_->find(id);
  if (held == nullptr || held->leaving) return no_such_volume(id.string());
  return shown(*held);
}

std::vector<ShownVolume> Volumes::list(store::TenantId tenant) const {
  std::vector<ShownVolume> all;
  for (const auto& [key, held] : table_->held)
    if (key.first == tenant && !held.leaving) all.push_back(shown(held));
  return all;
}

// The row first: from then on nobody is told of it, and what is left of its files goes at the next
// start at the latest.
Task<Result<void>> Volumes::remove(store::TenantId tenant, std::string name) {
  Name key(tenant, name);
  auto found = table_->held.find(key);
  if (found == table_->held.end() || found->second.leaving) co_return no_such_volume(name);
  if (!found->second.users.empty())
    co_return in_use("the volume is in the sandbox " + found->second.users.begin()->first.string());
  found->second.leaving = true;
  VolumeId id = found->second.row.id;
  auto erase = [tenant, id](store::Catalog& catalog) {
    return catalog.volumes().remove(tenant, id);
  };
  auto erased = co_await services_.ledger.run(erase);
  crash_point("volume.unlisted");
  if (!erased) {
    table_->held.at(key).leaving = false;
    co_return std::move(erased).error();
  }
  co_await remove_files(id);
  table_->held.erase(key);
  co_return Result<void>();
}

Task<void> Volumes::remove_files(VolumeId id) {
  Result<void> removed;
  for (int tries = 0; tries < kMaxRemovals; ++tries) {
    removed = co_await services_.driver.remove_volume(id);
    if (removed) co_return;
    boost::asio::steady_timer pause(services_.executor, kRemovalPause);
    co_await wait(pause);
  }
  // The next start finds them without a row.
  log_warning("files of a volume are left", {{"volume", id.view()}, removed.error()});
}

Result<std::vector<store::VolumeUse>> Volumes::resolve(
    store::TenantId tenant, const std::vector<WantedVolume>& wanted) const {
  std::vector<store::VolumeUse> uses;
  for (const WantedVolume& one : wanted) {
    auto found = table_->held.find(Name(tenant, one.name));
    if (found == table_->held.end() || found->second.leaving)
      return no_such_volume(one.name).with_field("volumes");
    for (const auto& [user, reads] : found->second.users) {
      if (reads && one.read_only) continue;
      std::string what = reads ? " reads the volume " : " writes to the volume ";
      return in_use("the sandbox " + user.string() + what + one.name).with_field("volumes");
    }
    uses.push_back({found->second.row.id, one.name, one.path, one.read_only});
  }
  return uses;
}

VolumeClaim Volumes::claim(const store::SandboxRow& row) {
  return row.volumes.empty() ? VolumeClaim() : VolumeClaim(table_, row);
}

Task<Result<void>> Volumes::adopt() {
  ATOLL_CO_TRY(std::vector<VolumeId> listed, co_await services_.driver.list_volumes());
  auto read = [](store::Catalog& catalog) { return catalog.volumes().all(); };
  ATOLL_CO_TRY(std::vector<store::VolumeRow> rows, co_await services_.ledger.run(read));
  std::set<VolumeId> unowned(listed.begin(), listed.end());
  for (const store::VolumeRow& row : rows) {
    if (unowned.erase(row.id) == 0)
      log_error("the files of a volume are gone", {{"volume", row.id.view()}});
    Name key(row.tenant, row.name);
    if (!table_->held.contains(key))
      table_->held.emplace(key, HeldVolume{row, admission_.count_disk(row.bytes, row.tenant)});
  }
  for (VolumeId id : unowned) ATOLL_CO_TRY_VOID(co_await clear_unlisted(services_, id));
  co_return Result<void>();
}

}  // namespace atl::sandbox
