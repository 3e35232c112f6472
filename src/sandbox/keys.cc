#include "sandbox/keys.h"

#include <algorithm>

#include "base/clock.h"
#include "store/key_file.h"
#include "store/sha256.h"

namespace atl::sandbox {

namespace {

constexpr size_t kMaxNameBytes = 63;

bool is_local(const store::KeyRow& row) {
  return row.tenant == store::kLocalTenant && row.name == store::kLocalKeyName;
}

int64_t now_ms() { return to_milliseconds(SystemClock().wall_now()); }

Result<store::TenantId> tenant_named(store::Catalog& catalog, const std::string& name) {
  ATOLL_TRY(std::optional<store::TenantRow> found, catalog.tenants().find_by_name(name));
  if (found) return found->id;
  return catalog.tenants().insert(name, now_ms());
}

Result<NewKey> create_key(store::Catalog& catalog, std::string tenant, std::string name,
                          KeyShape shape) {
  ATOLL_TRY(auto rows, catalog.keys().all_in_force());
  if (rows.size() >= kMaxKeys)
    return Error(Code::kConflict, "there are " + std::to_string(kMaxKeys) + " keys already")
        .with_reason("too_many_keys");
  ATOLL_TRY(store::TenantId owner, tenant_named(catalog, tenant));
  std::string key = shape == KeyShape::kE2b ? store::draw_e2b_key() : store::draw_key();
  store::KeyRow row{.id = store::draw_key_id(),
                    .tenant = owner,
                    .name = std::move(name),
                    .hash = store::sha256(key).bytes(),
                    .created_at_ms = now_ms(),
                    .sequence = catalog.sequence().draw()};
  ATOLL_TRY_VOID(catalog.keys().insert(row));
  NamedKey named{row.id, std::move(tenant), row.name, row.created_at_ms};
  return NewKey{std::move(named), std::move(key)};
}

Result<std::vector<NamedKey>> list_keys(store::Catalog& catalog) {
  ATOLL_TRY(auto tenants, catalog.tenants().all());
  ATOLL_TRY(auto rows, catalog.keys().all_in_force());
  std::map<store::TenantId, std::string> names;
  for (const store::TenantRow& tenant : tenants) names.emplace(tenant.id, tenant.name);
  std::vector<NamedKey> keys;
  for (store::KeyRow& row : rows)
    keys.push_back({std::move(row.id), names[row.tenant], std::move(row.name), row.created_at_ms});
  return keys;
}

Result<void> revoke_key(store::Catalog& catalog, const std::string& id) {
  ATOLL_TRY(auto rows, catalog.keys().all_in_force());
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const store::KeyRow& candidate) { return candidate.id == id; });
  if (row == rows.end())
    return Error(Code::kNotFound, "there is no such key").with_reason("key_not_found");
  // atolld would not start again with its file holding a revoked key.
  if (is_local(*row))
    return Error(Code::kConflict, "the local key is the file local.key").with_reason("local_key");
  return catalog.keys().revoke(row->tenant, id, now_ms());
}

}  // namespace

bool is_tenant_name(std::string_view text) {
  auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  auto known = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kMaxNameBytes && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), known);
}

bool is_key_name(std::string_view text) {
  return text.size() <= kMaxNameBytes && text != store::kLocalKeyName;
}

std::optional<Identity> Keys::recall(std::string_view key) const {
  if (key.empty() || key.size() > kMaxKeyBytes) return std::nullopt;
  // Looking up by hash leaks nothing of the key by its timing.
  auto found = known_.find(store::sha256(key).bytes());
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

Task<Result<std::optional<Identity>>> Keys::identify(std::string_view key) {
  using Answer = std::optional<Identity>;
  if (key.empty() || key.size() > kMaxKeyBytes) co_return Answer();
  if (auto known = recall(key)) co_return known;
  std::array<unsigned char, 32> hash = store::sha256(key).bytes();
  auto look_up = [hash](store::Catalog& catalog) { return catalog.keys().find_by_hash(hash); };
  uint64_t revocations = revocations_;
  ATOLL_CO_TRY(auto row, co_await ledger_.run(look_up));
  if (!row) co_return Answer();
  Identity identity{row->tenant,
                    is_local(*row) ? Identity::Role::kOperator : Identity::Role::kTenant, row->id};
  // A key that was revoked since it was read must not be remembered.
  if (revocations == revocations_) known_.emplace(hash, identity);
  co_return Answer(identity);
}

Task<Result<NewKey>> Keys::create(std::string tenant, std::string name, KeyShape shape) {
  auto work = [tenant, name, shape](store::Catalog& catalog) {
    return create_key(catalog, tenant, name, shape);
  };
  auto created = co_await ledger_.run(work);
  co_return created;
}

Task<Result<std::vector<NamedKey>>> Keys::list() {
  auto work = [](store::Catalog& catalog) { return list_keys(catalog); };
  auto listed = co_await ledger_.run(work);
  co_return listed;
}

Task<Result<void>> Keys::revoke(std::string id) {
  auto work = [id](store::Catalog& catalog) { return revoke_key(catalog, id); };
  auto revoked = co_await ledger_.run(work);
  ++revocations_;
  // The local key stays in force, so whoever has it must not wait behind those with wrong ones.
  bool stays = !revoked && revoked.error().reason() == "local_key";
  if (stays) co_return revoked;
  std::erase_if(known_, [&](const auto& entry) { return entry.second.key_id == id; });
  co_return revoked;
}

}  // namespace atl::sandbox
