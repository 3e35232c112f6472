#include "store/epoch.h"

#include <array>

#include "base/ids.h"

namespace atl::store {
namespace {

constexpr size_t kIdentityBytes = 16;

constexpr std::array<std::string_view, 4> kPairings = {"fresh", "upgraded", "paired",
                                                       "setting_aside"};

// One for each kind of change, because a trigger knows one. Temporary: of one connection.
#define ATOLL_RAISE_ON(table, change)                                              \
  "CREATE TEMP TRIGGER raise_" table "_" change " AFTER " change " ON main." table \
  " BEGIN UPDATE epoch SET synced = synced + 1; END;"
#define ATOLL_RAISE(table) \
  ATOLL_RAISE_ON(table, "INSERT") ATOLL_RAISE_ON(table, "UPDATE") ATOLL_RAISE_ON(table, "DELETE")

}  // namespace

Result<bool> has_epoch(Database& database) {
  ATOLL_TRY(Query query, database.query("SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
                                        "AND name = 'epoch'"));
  ATOLL_TRY(bool found, query.next());
  return found && query.int64() == 1;
}

Result<EpochRow> read_epoch(Database& database) {
  ATOLL_TRY(Query query,
            database.query("SELECT identity, synced, running, pairing, joined_at_ms FROM epoch"));
  ATOLL_TRY(bool found, query.next());
  if (!found) return Error(Code::kCorrupt, "database " + database.path() + ": it has no epoch");
  EpochRow row;
  row.epoch.identity = to_hex(query.blob<kIdentityBytes>());
  row.epoch.synced = query.uint64();
  row.epoch.running = query.uint64();
  std::string pairing = query.text();
  row.joined_at_ms = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  for (size_t i = 0; i < kPairings.size(); ++i)
    if (kPairings[i] == pairing) row.pairing = static_cast<Pairing>(i);
  return row;
}

std::optional<Epoch> find_stored_epoch(const std::string& path) {
  auto database = Database::open_without_log(path);
  if (!database) return std::nullopt;
  auto has = has_epoch(*database);
  if (!has || !*has) return std::nullopt;
  auto row = read_epoch(*database);
  return row ? std::optional(std::move(row->epoch)) : std::nullopt;
}

Result<void> set_pairing(Database& database, Pairing pairing) {
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database.run("UPDATE epoch SET pairing = ?, synced = synced + 1",
                         kPairings[static_cast<size_t>(pairing)]));
  return {};
}

Result<void> join_files(Database& database, uint64_t synced, int64_t now_ms) {
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database.run("UPDATE epoch SET pairing = 'setting_aside', joined_at_ms = ?, "
                         "synced = max(synced, ?) + 1",
                         now_ms, synced));
  return {};
}

Result<void> count_synced_changes(Database& database) {
  return database.execute(ATOLL_RAISE("tenants") ATOLL_RAISE("keys") ATOLL_RAISE("sandboxes")
                              ATOLL_RAISE("snapshots") ATOLL_RAISE("volumes")
                                  ATOLL_RAISE("templates") ATOLL_RAISE("template_tags")
                                      ATOLL_RAISE("sequence"));
}

#undef ATOLL_RAISE
#undef ATOLL_RAISE_ON

}  // namespace atl::store
