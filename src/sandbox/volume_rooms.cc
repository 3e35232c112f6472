#include "sandbox/volume_rooms.h"

#include "base/log.h"

namespace atl::sandbox {

namespace {

constexpr char kPath[] = "/volume";
constexpr std::chrono::hours kRoomTime{24};           // a transfer may take long
constexpr std::chrono::seconds kIdleTime{30};         // of one that nobody removed
constexpr std::chrono::seconds kWaitForRemovals{10};  // of rooms that others use

uint64_t in_milliseconds(std::chrono::milliseconds time) {
  return static_cast<uint64_t>(time.count());
}

}  // namespace

VolumeRooms::VolumeRooms(Sandboxes& sandboxes, std::string template_name)
    : sandboxes_(sandboxes),
      template_name_(std::move(template_name)),
      changed_(sandboxes.services().executor) {}

Result<VolumeRooms::Visit> VolumeRooms::join_user(const ShownVolume& volume,
                                                  Purpose purpose) const {
  for (const auto& [id, reads_only] : volume.users) {
    auto sandbox = sandboxes_.find(volume.row.tenant, id);
    bool fits = purpose == Purpose::kRead || !reads_only;
    if (!sandbox || sandbox->state() != State::kRunning || !fits) continue;
    for (const store::VolumeUse& use : sandbox->row().volumes)
      if (use.volume == volume.row.id) return Visit{sandbox, use.path, volume.row.id};
  }
  return Error(Code::kConflict, "the sandbox " + volume.users.front().first.string() +
                                    " has the volume, and it is paused or only reads")
      .with_reason("volume_in_use");
}

Task<Result<VolumeRooms::Visit>> VolumeRooms::make_room(ShownVolume volume) {
  VolumeId id = volume.row.id;
  rooms_.emplace(id, Room{});
  CreateSandbox request;
  request.template_name = template_name_;
  request.volumes.push_back({volume.row.name, kPath});
  request.network = "{}";
  request.persistence = "ephemeral";
  request.transient = true;
  request.ttl_ms = in_milliseconds(kRoomTime);
  request.idle_ttl_ms = in_milliseconds(kIdleTime);
  auto created = co_await sandboxes_.create(volume.row.tenant, std::move(request));
  if (created)
    rooms_[id] = {created->sandbox, 1};
  else
    rooms_.erase(id);
  changed_.notify_all();
  if (!created) co_return std::move(created).error();
  Visit visit{created->sandbox, kPath, id, true};
  co_return visit;
}

Task<Result<VolumeRooms::Visit>> VolumeRooms::enter(ShownVolume volume, Purpose purpose) {
  while (true) {
    auto found = rooms_.find(volume.row.id);
    if (found == rooms_.end()) break;
    if (found->second.visitors > 0) {
      ++found->second.visitors;
      Visit visit{found->second.sandbox, kPath, volume.row.id, true};
      co_return visit;
    }
    co_await changed_.wait();
  }
  // Who had it when the caller looked may be gone.
  ATOLL_CO_TRY(ShownVolume now,
               sandboxes_.services().volumes->find(volume.row.tenant, volume.row.name));
  if (!now.users.empty()) co_return join_user(now, purpose);
  co_return co_await make_room(std::move(now));
}

Task<void> VolumeRooms::leave(Visit visit) {
  if (!visit.in_room) co_return;
  Room& room = rooms_.at(visit.volume);
  if (--room.visitors > 0) co_return;
  SandboxId id = visit.sandbox->id();
  auto removed = co_await sandboxes_.remove(visit.sandbox->row().tenant, id);
  if (!removed) log_warning("left for the sweep", {{"sandbox", id.view()}, removed.error()});
  rooms_.erase(visit.volume);
  changed_.notify_all();
}

Task<void> VolumeRooms::wait_empty(store::TenantId tenant, std::vector<WantedVolume> volumes) {
  SteadyTime deadline = std::chrono::steady_clock::now() + kWaitForRemovals;
  for (const WantedVolume& wanted : volumes) {
    auto volume = sandboxes_.services().volumes->find(tenant, wanted.name);
    if (!volume) continue;  // whoever mounts it is told so
    while (rooms_.contains(volume->row.id))
      if (!co_await changed_.wait_until(deadline)) co_return;
  }
}

}  // namespace atl::sandbox
