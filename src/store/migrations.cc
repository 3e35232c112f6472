#include "store/migrations.h"

#include <string>

namespace atl::store {
namespace {

Result<int64_t> single_number(Database& database, Sql sql) {
  ATOLL_TRY(Query query, database.query(sql));
  ATOLL_TRY(bool found, query.next());
  if (!found) return Error(Code::kCorrupt, "database " + database.path() + ": no schema version");
  int64_t number = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  return number;
}

Result<void> apply(Database& database, Sql script, uint32_t version) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database));
  ATOLL_TRY_VOID(
      database.execute("CREATE TABLE IF NOT EXISTS schema_version ("
                       "  only INTEGER PRIMARY KEY CHECK (only = 1),"
                       "  version INTEGER NOT NULL) STRICT;"));
  ATOLL_TRY_VOID(database.execute(script));
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database.run("INSERT INTO schema_version (only, version) VALUES (1, ?) "
                         "ON CONFLICT (only) DO UPDATE SET version = excluded.version",
                         version));
  return transaction.commit();
}

}  // namespace

Result<uint32_t> schema_version(Database& database) {
  ATOLL_TRY(int64_t tables, single_number(database, "SELECT count(*) FROM sqlite_schema"));
  if (tables == 0) return uint32_t{0};
  ATOLL_TRY(int64_t named, single_number(database,
                                         "SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
                                         "AND name = 'schema_version'"));
  if (named != 1)
    return Error(Code::kInvalid, "database " + database.path() +
                                     ": holds tables of another program; choose another file");
  ATOLL_TRY(int64_t version, single_number(database, "SELECT version FROM schema_version"));
  if (version <= 0 || version > UINT32_MAX)
    return Error(Code::kCorrupt, "database " + database.path() + ": schema version " +
                                     std::to_string(version) + " cannot be");
  return static_cast<uint32_t>(version);
}

Result<void> check_migratable(Database& database, std::span<const Sql> migrations) {
  ATOLL_TRY(uint32_t version, schema_version(database));
  if (version <= migrations.size()) return {};
  return Error(Code::kUnsupported,
               "database " + database.path() + ": schema version " + std::to_string(version) +
                   " is newer than this program knows (" + std::to_string(migrations.size()) +
                   "); run the newer version, or restore the backup made before it");
}

Result<void> migrate(Database& database, std::span<const Sql> migrations) {
  ATOLL_TRY_VOID(check_migratable(database, migrations));
  ATOLL_TRY(uint32_t version, schema_version(database));
  for (; version < migrations.size(); ++version) {
    auto applied = apply(database, migrations[version], version + 1);
    if (!applied)
      return std::move(applied).error().with_context("migrate to schema version " +
                                                     std::to_string(version + 1));
  }
  return {};
}

}  // namespace atl::store
