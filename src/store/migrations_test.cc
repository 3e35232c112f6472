#include "store/migrations.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "store/catalog.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr Sql kThree[] = {
    "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);",
    "ALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT 'new';",
    "CREATE TABLE b AS SELECT x, y FROM a;",
};

Database open_or_die(const std::string& path) {
  auto database = Database::open(path, Durability::kMachine);
  if (!database) ADD_FAILURE() << database.error().message();
  return std::move(database).value();
}

// All that the schema says, to compare two databases.
std::string schema_of(Database& database) {
  auto query =
      database.query("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name");
  std::string schema;
  while (query->next().value())
    schema += query->text() + " " + query->text() + ": " + query->text() + "\n";
  return schema;
}

// Every older version, the empty one included, must end at the same schema.
void expect_same_end(std::span<const Sql> migrations) {
  TestDirectory directory;
  Database fresh = open_or_die(directory / "fresh");
  ASSERT_TRUE(migrate(fresh, migrations).ok());
  EXPECT_EQ(schema_version(fresh).value(), migrations.size());
  for (size_t older = 0; older < migrations.size(); ++older) {
    std::string path = directory / ("from-" + std::to_string(older));
    {
      Database database = open_or_die(path);
      ASSERT_TRUE(migrate(database, migrations.first(older)).ok());
      EXPECT_EQ(schema_version(database).value(), older);
    }
    Database database = open_or_die(path);
    ASSERT_TRUE(migrate(database, migrations).ok());
    EXPECT_EQ(schema_version(database).value(), migrations.size());
    EXPECT_EQ(schema_of(database), schema_of(fresh)) << "from version " << older;
  }
}

TEST(Migrations, EveryOlderVersionEndsAtTheSameSchema) { expect_same_end(kThree); }

TEST(Migrations, EveryOlderCatalogEndsAtTheSameSchema) { expect_same_end(catalog_migrations()); }

TEST(Migrations, RowsOfAnOlderVersionAreKept) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(migrate(database, std::span(kThree).first(1)).ok());
  ASSERT_TRUE(migrate(database, kThree).ok());
  auto query = database.query("SELECT x, y FROM b");
  ASSERT_TRUE(query.ok() && query->next().value());
  EXPECT_EQ(query->int64(), 1);
  EXPECT_EQ(query->text(), "new");
}

// What an older atolld left behind is taken up by a newer one.
TEST(Migrations, RowsOfTheFirstCatalogGetTheDefaultsOfLaterColumns) {
  TestDirectory directory;
  std::string path = directory / "db";
  SandboxId id = SandboxId::draw();
  {
    Database database = open_or_die(path);
    ASSERT_TRUE(migrate(database, catalog_migrations().first(1)).ok());
    ASSERT_TRUE(
        database
            .run("INSERT INTO sandboxes VALUES (1, ?, NULL, 'running', 'python', zeroblob(32), "
                 "1000, 1, 1, 1, 1, 300000, zeroblob(16), '{}', '{}', 5, '', 1, 2)",
                 id.view())
            .ok());
    ASSERT_TRUE(database
                    .run("INSERT INTO execs (tenant_id, sandbox_id, exec, request, created_at_ms) "
                         "VALUES (1, ?, 1, '{}', 6)",
                         id.view())
                    .ok());
  }
  auto catalog = Catalog::open(path);
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  auto sandboxes = (*catalog)->sandboxes().all();
  ASSERT_TRUE(sandboxes.ok()) << sandboxes.error().message();
  ASSERT_EQ(sandboxes->size(), 1u);
  EXPECT_EQ(sandboxes->front().open_files, 1024u);
  EXPECT_EQ(sandboxes->front().on_oom, "exec");
  EXPECT_EQ(sandboxes->front().ttl_ms, 300'000u);
  EXPECT_EQ(sandboxes->front().idle_ttl_ms, 0u);
  EXPECT_EQ(sandboxes->front().ttl_from_ms, 5) << "it counts from its creation";
  EXPECT_FALSE(sandboxes->front().limits_unsettled);
  auto execs = (*catalog)->execs().all_running(id);
  ASSERT_TRUE(execs.ok()) << execs.error().message();
  ASSERT_EQ(execs->size(), 1u);
  EXPECT_EQ(execs->front().limits_hit, 0u);
  EXPECT_EQ(execs->front().peak_memory_scope, "exec");
}

constexpr size_t kBeforeSequence = 24;

void insert_at(Database& database, std::string_view table, int64_t time_ms, std::string_view id) {
  std::string_view sandbox = "sabcdefghijklmnop234";
  Result<int64_t> done = 0;
  if (table == "sandbox")
    done = database.run(
        "INSERT INTO sandboxes (tenant_id, sandbox_id, state, template_name, image, cpu_millis, "
        "memory_bytes, pids, disk_bytes, output_bytes, ttl_ms, nonce, metadata, environment, "
        "created_at_ms, failure, generation, next_exec, paused_at_ms) VALUES (1, ?, 'running', "
        "'python', zeroblob(32), 1, 1, 1, 1, 1, 1, zeroblob(16), '{}', '{}', ?, '', 1, 9, ?)",
        id, time_ms, time_ms + 1);
  if (table == "snapshot")
    done = database.run(
        "INSERT INTO snapshots VALUES (1, ?, NULL, ?, '', '{}', 'asked', 1, ?, 'python', "
        "zeroblob(32), 1, 1, 1, 1, NULL, 0, NULL)",
        id, sandbox, time_ms);
  if (table == "exec")
    done = database.run(
        "INSERT INTO execs (tenant_id, sandbox_id, exec, request, created_at_ms) "
        "VALUES (1, ?, ?, '{}', ?)",
        sandbox, static_cast<int64_t>(id[0] - '0'), time_ms);
  if (table == "run")
    done = database.run(
        "INSERT INTO context_runs (tenant_id, sandbox_id, context_id, run, state, code, "
        "environment, timeout_ms, created_at_ms) VALUES (1, ?, 'cabcdefghijk', ?, 'queued', '', "
        "'', 1, ?)",
        sandbox, static_cast<int64_t>(id[0] - '0'), time_ms);
  ASSERT_TRUE(done.ok()) << done.error().message();
}

// What an older Atoll ordered by time keeps its order, and all that comes later is behind it.
TEST(Migrations, RowsThatHadOnlyATimeAreNumberedInItsOrder) {
  TestDirectory directory;
  std::string path = directory / "db";
  std::string first = "sabcdefghijklmnop234", second = "saaaaaaaaaaaaaaaaaaa";
  std::string snapshot = "naaaaaaaaaaaaaaaaaaa";
  {
    Database database = open_or_die(path);
    ASSERT_TRUE(migrate(database, catalog_migrations().first(kBeforeSequence)).ok());
    insert_at(database, "sandbox", 5, first);
    insert_at(database, "sandbox", 90, second);
    ASSERT_TRUE(database
                    .run("INSERT INTO contexts VALUES (1, ?, 'cabcdefghijk', 1, 'python', '', '', "
                         "'', 0, 3, 6)",
                         first)
                    .ok());
    insert_at(database, "run", 40, "2");
    insert_at(database, "run", 20, "1");
    insert_at(database, "snapshot", 20, snapshot);
    insert_at(database, "exec", 10, "1");
    insert_at(database, "exec", 20, "2");
    insert_at(database, "exec", 30, "3");
  }
  auto catalog = Catalog::open(path);
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  auto sandboxes = (*catalog)->sandboxes().all();
  ASSERT_TRUE(sandboxes.ok()) << sandboxes.error().message();
  ASSERT_EQ(sandboxes->size(), 2u);
  EXPECT_EQ((*sandboxes)[0].id.string(), first);
  EXPECT_LT((*sandboxes)[0].paused_sequence, (*sandboxes)[1].paused_sequence);
  auto cut = (*catalog)->snapshots().all();
  ASSERT_EQ(cut->size(), 1u);
  SandboxId id = (*sandboxes)[0].id;
  std::map<int64_t, std::string> order = {{cut->front().cut_sequence, "cut"}};
  for (const ExecRow& exec : *(*catalog)->execs().list(kLocalTenant, id, std::nullopt, 10))
    order.emplace(exec.sequence, exec.id.string());
  for (const RunRow& run : *(*catalog)->contexts().runs_since(kLocalTenant, id, 0))
    order.emplace(run.sequence, "r" + std::to_string(run.number));
  std::string text;
  for (const auto& [number, name] : order) text += name + " ";
  EXPECT_EQ(text, "e1 cut e2 r1 e3 r2 ");
  EXPECT_GT((*catalog)->sequence().draw(), order.rbegin()->first);
}

TEST(Migrations, NewerSchemaIsRefused) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(migrate(database, kThree).ok());
  auto refused = migrate(database, std::span(kThree).first(2));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("schema version 3 is newer than this program knows (2)"),
            std::string::npos);
  EXPECT_EQ(schema_version(database).value(), 3u);
}

TEST(Migrations, DatabaseOfAnotherProgramIsRefused) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database.execute("CREATE TABLE theirs (x INTEGER)").ok());
  auto refused = migrate(database, kThree);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("another program"), std::string::npos);
}

TEST(Migrations, FailedMigrationLeavesTheOldVersionWhole) {
  constexpr Sql kFailing[] = {
      kThree[0],
      "ALTER TABLE a ADD COLUMN y TEXT; INSERT INTO a VALUES (2, 'two'); INSERT INTO nowhere "
      "VALUES (1);",
  };
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  auto failed = migrate(database, kFailing);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("migrate to schema version 2"), std::string::npos);
  EXPECT_EQ(schema_version(database).value(), 1u);

  Database expected = open_or_die(directory / "expected");
  ASSERT_TRUE(migrate(expected, std::span(kThree).first(1)).ok());
  EXPECT_EQ(schema_of(database), schema_of(expected));
  EXPECT_TRUE(migrate(database, kThree).ok());
}

TEST(Migrations, KilledMigrationLeavesTheOldVersionWhole) {
  // Writes enough to spill into the WAL, then goes on until it is killed.
  constexpr Sql kEndless[] = {
      kThree[0],
      "ALTER TABLE a ADD COLUMN y TEXT;"
      "INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT i, hex(zeroblob(500)) FROM n;",
  };
  TestDirectory directory;
  std::string path = directory / "db";
  pid_t child = fork();
  if (child == 0) {
    auto database = Database::open(path, Durability::kMachine);
    if (database.ok()) (void)migrate(*database, kEndless).ok();
    _exit(1);
  }
  ASSERT_GT(child, 0);
  // It has begun, and has written more than its memory holds.
  struct stat wal = {};
  ASSERT_TRUE(eventually(
      [&] { return stat((path + "-wal").c_str(), &wal) == 0 && wal.st_size > (1 << 20); }));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the migration ended before it was killed";

  Database database = open_or_die(path);
  EXPECT_EQ(schema_version(database).value(), 1u);
  ASSERT_TRUE(migrate(database, kThree).ok());
  auto query = database.query("SELECT count(*) FROM b");
  ASSERT_TRUE(query.ok() && query->next().value());
  EXPECT_EQ(query->int64(), 1);
}

}  // namespace
}  // namespace atl::store
