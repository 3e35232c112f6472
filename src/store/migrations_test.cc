#include "store/migrations.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
