#include "store/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

Database open_or_die(const std::string& path, Durability durability = Durability::kProcess) {
  auto database = Database::open(path, durability);
  if (!database) ADD_FAILURE() << database.error().message();
  return std::move(database).value();
}

int64_t number(Database& database, Sql sql) {
  auto query = database.query(sql);
  EXPECT_TRUE(query.ok() && query->next().value());
  return query->int64();
}

mode_t mode_of(const std::string& path) {
  struct stat status;
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(Database, FilesArePrivateWhateverTheUmask) {
  TestDirectory directory;
  mode_t old = umask(0);
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database.execute("CREATE TABLE t (x INTEGER) STRICT").ok());
  umask(old);
  EXPECT_EQ(mode_of(directory / "db"), 0600u);
  EXPECT_EQ(mode_of(directory / "db-wal"), 0600u);
  EXPECT_EQ(mode_of(directory / "db-shm"), 0600u);
}

TEST(Database, RefusesAFileThatOthersMayRead) {
  TestDirectory directory;
  { Database database = open_or_die(directory / "db"); }
  ASSERT_EQ(chmod((directory / "db").c_str(), 0640), 0);
  auto refused = Database::open(directory / "db", Durability::kProcess);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kDenied);
  EXPECT_NE(refused.error().message().find("chmod 600"), std::string::npos);
}

TEST(Database, RefusesASymbolicLink) {
  TestDirectory directory;
  { Database database = open_or_die(directory / "db"); }
  ASSERT_EQ(symlink((directory / "db").c_str(), (directory / "link").c_str()), 0);
  EXPECT_FALSE(Database::open(directory / "link", Durability::kProcess).ok());
}

TEST(Database, RefusesAFileThatIsNotADatabase) {
  TestDirectory directory;
  ASSERT_TRUE(replace_file(directory / "db", std::string(8192, 'x'), 0600).ok());
  auto refused = Database::open(directory / "db", Durability::kProcess);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kCorrupt);
  EXPECT_NE(refused.error().message().find(directory / "db"), std::string::npos);
  EXPECT_NE(refused.error().message().find("restore a backup"), std::string::npos);
}

TEST(Database, ReportsACorruptPage) {
  TestDirectory directory;
  {
    Database database = open_or_die(directory / "db");
    ASSERT_TRUE(database.execute("CREATE TABLE t (x TEXT NOT NULL) STRICT").ok());
    for (int i = 0; i < 500; ++i)
      ASSERT_TRUE(database.run("INSERT INTO t (x) VALUES (?)", std::string(100, 'a')).ok());
  }
  {
    auto file = open_file(directory / "db", O_RDWR);
    ASSERT_TRUE(file.ok());
    std::string noise(4096, '\xff');
    for (off_t page = 1; page < 8; ++page)
      ASSERT_EQ(pwrite(file->get(), noise.data(), noise.size(), page * 4096), 4096);
  }
  Database database = open_or_die(directory / "db");
  auto query = database.query("SELECT count(x) FROM t WHERE x > ?", std::string_view("a"));
  auto row = query.ok() ? query->next() : Result<bool>(std::move(query).error());
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().code(), Code::kCorrupt);
}

TEST(Database, DurabilityIsWhatWasAskedFor) {
  TestDirectory directory;
  Database process = open_or_die(directory / "db", Durability::kProcess);
  Database machine = open_or_die(directory / "db", Durability::kMachine);
  EXPECT_EQ(number(process, "PRAGMA synchronous"), 1);
  EXPECT_EQ(number(machine, "PRAGMA synchronous"), 2);
  EXPECT_EQ(number(process, "PRAGMA foreign_keys"), 1);
  EXPECT_EQ(number(process, "PRAGMA trusted_schema"), 0);
  EXPECT_EQ(number(process, "PRAGMA cell_size_check"), 1);
  EXPECT_EQ(number(process, "PRAGMA secure_delete"), 0);
}

TEST(Database, ValuesComeBackAsTheyWere) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database
                  .execute("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT, d TEXT, e BLOB, "
                           "f INTEGER) STRICT")
                  .ok());
  std::array<unsigned char, 4> bytes = {0, 1, 0xff, 0};
  std::string text("quote ' nul \0 end", 17);
  ASSERT_TRUE(database
                  .run("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", int64_t{-5}, uint64_t{INT64_MAX},
                       text, std::string_view(), Blob(bytes), std::optional<int64_t>())
                  .ok());
  auto query = database.query("SELECT a, b, c, d, e, f FROM t");
  ASSERT_TRUE(query.ok() && query->next().value());
  EXPECT_EQ(query->int64(), -5);
  EXPECT_EQ(query->uint64(), uint64_t{INT64_MAX});
  EXPECT_EQ(query->text(), text);
  EXPECT_EQ(query->text_or_null(), std::optional<std::string>(""));  // empty is not NULL
  EXPECT_EQ(query->blob<4>(), bytes);
  EXPECT_EQ(query->int64_or_null(), std::nullopt);
  EXPECT_TRUE(query->row_done().ok());
  EXPECT_FALSE(query->next().value());
}

TEST(Database, RefusesToStoreANumberThatDoesNotFit) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database.execute("CREATE TABLE t (a INTEGER) STRICT").ok());
  auto stored = database.run("INSERT INTO t VALUES (?)", uint64_t{1} << 63);
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.error().code(), Code::kInvalid);
  EXPECT_EQ(number(database, "SELECT count(*) FROM t"), 0);
}

TEST(Database, ColumnOfAnotherTypeTurnsTheRowBad) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  auto wrong_type = database.query("SELECT 'text', 7");
  ASSERT_TRUE(wrong_type.ok() && wrong_type->next().value());
  EXPECT_EQ(wrong_type->int64(), 0);
  EXPECT_EQ(wrong_type->int64(), 0);
  EXPECT_EQ(wrong_type->row_done().error().code(), Code::kCorrupt);

  auto negative = database.query("SELECT -1");
  ASSERT_TRUE(negative.ok() && negative->next().value());
  EXPECT_EQ(negative->uint64(), 0u);
  EXPECT_FALSE(negative->row_done().ok());

  auto large = database.query("SELECT 4294967296");
  ASSERT_TRUE(large.ok() && large->next().value());
  EXPECT_EQ(large->uint32(), 0u);
  EXPECT_FALSE(large->row_done().ok());

  auto short_blob = database.query("SELECT x'0102'");
  ASSERT_TRUE(short_blob.ok() && short_blob->next().value());
  EXPECT_EQ(short_blob->blob<4>(), (std::array<unsigned char, 4>{}));
  EXPECT_FALSE(short_blob->row_done().ok());
}

TEST(Database, ConstraintsHaveTheirCodes) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database
                  .execute("CREATE TABLE p (a INTEGER PRIMARY KEY) STRICT;"
                           "CREATE TABLE t (a INTEGER UNIQUE CHECK (a > 0), "
                           "b INTEGER REFERENCES p (a)) STRICT")
                  .ok());
  ASSERT_TRUE(database.run("INSERT INTO t VALUES (?, NULL)", 1).ok());
  EXPECT_EQ(database.run("INSERT INTO t VALUES (?, NULL)", 1).error().code(), Code::kConflict);
  EXPECT_EQ(database.run("INSERT INTO t VALUES (?, NULL)", -1).error().code(), Code::kInvalid);
  EXPECT_EQ(database.run("INSERT INTO t VALUES (?, 9)", 2).error().code(), Code::kNotFound);
  EXPECT_EQ(database.run("INSERT INTO t VALUES (?, NULL)", std::string_view("x")).error().code(),
            Code::kInvalid);
}

TEST(Transaction, RollsBackUnlessCommitted) {
  TestDirectory directory;
  Database database = open_or_die(directory / "db");
  ASSERT_TRUE(database.execute("CREATE TABLE t (a INTEGER) STRICT").ok());
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database.run("INSERT INTO t VALUES (?)", 1).ok());
    EXPECT_TRUE(database.in_transaction());
  }
  EXPECT_FALSE(database.in_transaction());
  EXPECT_EQ(number(database, "SELECT count(*) FROM t"), 0);
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database.run("INSERT INTO t VALUES (?)", 1).ok());
    ASSERT_TRUE(transaction->commit().ok());
  }
  EXPECT_EQ(number(database, "SELECT count(*) FROM t"), 1);
}

TEST(Transaction, CommittedRowIsSeenByTheOtherConnection) {
  TestDirectory directory;
  Database one = open_or_die(directory / "db");
  Database other = open_or_die(directory / "db", Durability::kMachine);
  ASSERT_TRUE(one.execute("CREATE TABLE t (a INTEGER) STRICT").ok());
  auto transaction = Transaction::begin(one);
  ASSERT_TRUE(one.run("INSERT INTO t VALUES (?)", 1).ok());
  EXPECT_EQ(number(other, "SELECT count(*) FROM t"), 0);
  ASSERT_TRUE(transaction->commit().ok());
  EXPECT_EQ(number(other, "SELECT count(*) FROM t"), 1);
}

TEST(Database, ACopyHasWhatIsCommittedWhileAnotherWrites) {
  TestDirectory directory;
  auto database = Database::open(directory / "db", Durability::kProcess);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE(
      database->execute("CREATE TABLE t (x INTEGER) STRICT; INSERT INTO t VALUES (1);").ok());
  auto other = Database::open(directory / "db", Durability::kProcess);
  ASSERT_TRUE(other.ok());
  auto open = Transaction::begin(*other);
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE(other->run("INSERT INTO t VALUES (2)").ok());
  umask(077);
  auto copied = database->copy_to(directory / "copy");
  ASSERT_TRUE(copied.ok()) << copied.error().message();
  ASSERT_TRUE(open->commit().ok());

  auto copy = Database::open(directory / "copy", Durability::kProcess);
  ASSERT_TRUE(copy.ok()) << copy.error().message();
  EXPECT_TRUE(copy->check_integrity().ok());
  auto query = copy->query("SELECT count(*), max(x) FROM t");
  ASSERT_TRUE(query.ok() && query->next().value());
  EXPECT_EQ(query->int64(), 1);
  EXPECT_EQ(query->int64(), 1);
  EXPECT_FALSE(database->copy_to(directory / "copy").ok()) << "it is there already";
}

}  // namespace
}  // namespace atl::store
