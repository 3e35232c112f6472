#include "store/volume_rows.h"

#include <array>

namespace atl::store {
namespace {

Result<VolumeRow> read_row(Query& query) {
  std::string text = query.text();
  auto id = VolumeId::parse(text);
  auto tenant = TenantId::from_number(query.int64());
  if (!id || !tenant) return Error(Code::kCorrupt, "read volume '" + text + "': malformed ids");
  VolumeRow row{.id = *id, .tenant = *tenant, .name = query.text()};
  row.bytes = query.uint64();
  row.created_at_ms = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  return row;
}

Error malformed(std::string_view line) {
  return Error(Code::kCorrupt, "a sandbox has a malformed volume: " + std::string(line));
}

Result<VolumeUse> decode_use(std::string_view line) {
  std::array<std::string_view, 4> words;
  std::string_view rest = line;
  for (size_t i = 0; i < words.size(); ++i) {
    bool is_last = i + 1 == words.size();
    size_t end = is_last ? rest.size() : rest.find(' ');
    if (end == rest.npos || end == 0) return malformed(line);
    words[i] = rest.substr(0, end);
    rest.remove_prefix(is_last ? end : end + 1);
  }
  auto id = VolumeId::parse(words[0]);
  if (!id || (words[1] != "rw" && words[1] != "ro")) return malformed(line);
  return VolumeUse{.volume = *id,
                   .name = std::string(words[2]),
                   .path = std::string(words[3]),
                   .read_only = words[1] == "ro"};
}

}  // namespace

std::string encode_volume_uses(const std::vector<VolumeUse>& uses) {
  std::string text;
  for (const VolumeUse& use : uses)
    text +=
        use.volume.string() + (use.read_only ? " ro " : " rw ") + use.name + " " + use.path + "\n";
  return text;
}

Result<std::vector<VolumeUse>> decode_volume_uses(std::string_view text) {
  std::vector<VolumeUse> uses;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == text.npos) return malformed(text);
    ATOLL_TRY(VolumeUse use, decode_use(text.substr(0, end)));
    uses.push_back(std::move(use));
    text.remove_prefix(end + 1);
  }
  return uses;
}

Result<void> VolumeRows::insert(const VolumeRow& row) {
  auto inserted = database_.run(
      "INSERT INTO volumes (volume_id, tenant_id, name, bytes, created_at_ms) "
      "VALUES (?, ?, ?, ?, ?)",
      row.id.view(), row.tenant.number(), row.name, row.bytes, row.created_at_ms);
  if (!inserted) return std::move(inserted).error().with_context("insert volume");
  return {};
}

Result<void> VolumeRows::remove(TenantId tenant, const VolumeId& id) {
  ATOLL_TRY(int64_t changed,
            database_.run("DELETE FROM volumes WHERE tenant_id = ? AND volume_id = ?",
                          tenant.number(), id.view()));
  if (changed == 0) return Error(Code::kNotFound, "there is no volume " + id.string());
  return {};
}

Result<std::vector<VolumeRow>> VolumeRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT volume_id, tenant_id, name, bytes, created_at_ms "
                                         "FROM volumes ORDER BY tenant_id, name"));
  std::vector<VolumeRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(VolumeRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

}  // namespace atl::store
