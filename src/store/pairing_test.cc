#include "store/pairing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "store/catalog.h"
#include "store/migrations.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

namespace fs = std::filesystem;

class PairingTest : public testing::Test {
 protected:
  PairingTest() {
    for (const char* name : {"daemon", "daemon/blobs", "epoch"})
      fs::create_directory(directory_ / name);
  }
  std::unique_ptr<Catalog> open() {
    auto catalog = Catalog::open(places_);
    EXPECT_TRUE(catalog.ok()) << catalog.error().message();
    return catalog ? std::move(*catalog) : nullptr;
  }
  // As a start that took up all that there is.
  std::unique_ptr<Catalog> start() {
    auto catalog = open();
    EXPECT_TRUE(catalog->epoch().finish_pairing().ok());
    EXPECT_TRUE(catalog->epoch().publish().ok());
    return catalog;
  }
  static void add_tenant(Catalog& catalog) {
    EXPECT_TRUE(catalog.tenants().insert(random_text(12), 1).ok());
    EXPECT_TRUE(catalog.epoch().publish().ok());
  }
  static SandboxRow add_sandbox(Catalog& catalog) {
    SandboxRow row{.id = SandboxId::draw(),
                   .tenant = kLocalTenant,
                   .template_name = "python",
                   .image = sha256("image")};
    row.sequence = catalog.sequence().draw();
    EXPECT_TRUE(catalog.sandboxes().insert(row).ok());
    EXPECT_TRUE(catalog.epoch().publish().ok());
    return row;
  }
  // The database as it is now, and back.
  void copy_away() {
    fs::remove_all(directory_ / "copy");
    fs::create_directory(directory_ / "copy");
    for (const auto& file : fs::directory_iterator(places_.daemon_directory))
      if (file.is_regular_file()) fs::copy(file.path(), directory_ / "copy");
  }
  void remove_database() {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(places_.database() + end);
  }
  void copy_back() {
    remove_database();
    for (const auto& file : fs::directory_iterator(directory_ / "copy"))
      fs::copy(file.path(), places_.daemon_directory);
  }
  void expect_refused(std::string_view words, std::string_view reason = "database_mismatch") {
    auto checked = check_pair(places_);
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().reason(), reason) << checked.error().message();
    EXPECT_NE(checked.error().message().find(words), std::string::npos)
        << checked.error().message();
    EXPECT_NE(checked.error().message().find("atoll restore"), std::string::npos);
    EXPECT_FALSE(Catalog::open(places_).ok());
  }

  TestDirectory directory_;
  PairedPlaces places_{directory_ / "daemon", directory_ / "epoch/current"};
};

TEST_F(PairingTest, ANewDirectoryIsPairedAndStartsAgain) {
  EXPECT_EQ(open()->epoch().pairing(), Pairing::kFresh);
  // Until it was seen that nothing is there that it does not know.
  EXPECT_EQ(start()->epoch().pairing(), Pairing::kPaired);
  EXPECT_EQ(start()->epoch().pairing(), Pairing::kPaired);
}

TEST_F(PairingTest, AnOlderVersionIsPairedOnce) {
  {
    auto database = Database::open(places_.database(), Durability::kMachine);
    auto all = catalog_migrations();
    ASSERT_TRUE(migrate(*database, all.first(all.size() - 1)).ok());
    ASSERT_TRUE(database
                    ->run("INSERT INTO keys (tenant_id, key_id, name, hash, created_at_ms) "
                          "VALUES (1, 'k', 'local', zeroblob(32), 1)")
                    .ok());
  }
  std::string blob = directory_ / "daemon/blobs/blob";
  ASSERT_TRUE(replace_file(blob, "bytes", 0600).ok());
  copy_away();
  { EXPECT_EQ(open()->epoch().pairing(), Pairing::kUpgraded); }
  { start(); }
  EXPECT_EQ(open()->epoch().pairing(), Pairing::kPaired);
  copy_back();
  expect_refused("has no epoch");
}

TEST_F(PairingTest, AMissingDatabaseIsRefusedAndNoneIsMade) {
  { start(); }
  remove_database();
  expect_refused("there is no database");
  EXPECT_FALSE(fs::exists(places_.database()));
}

TEST_F(PairingTest, FilesWithoutADatabaseAreRefusedAlsoWithoutAnEpoch) {
  ASSERT_TRUE(replace_file(directory_ / "daemon/blobs/blob", "bytes", 0600).ok());
  expect_refused("there are 1 blobs");
}

TEST_F(PairingTest, AnOlderCopyIsRefusedWhateverKeptRowWasAddedSince) {
  {
    auto catalog = start();
    copy_away();
    add_tenant(*catalog);
  }
  copy_back();
  expect_refused("older copy");
}

TEST_F(PairingTest, AnOlderCopyThatLacksASandboxIsRefusedInTheSameBoot) {
  {
    auto catalog = start();
    copy_away();
    add_sandbox(*catalog);
  }
  copy_back();
  expect_refused("older copy");
  // After another boot there is nothing of sandboxes that it could lose.
  auto mark = EpochFile::read(places_.epoch_file);
  (*mark)->boot = "another";
  ASSERT_TRUE(EpochFile::create(places_.epoch_file, **mark).ok());
  EXPECT_TRUE(check_pair(places_).ok());
}

TEST_F(PairingTest, AnOlderFileUnderANewerLogIsRefused) {
  pid_t child = fork();
  if (child == 0) {  // its log stays, because it does not close
    auto catalog = start();
    fs::copy(places_.database(), directory_ / "older");
    add_tenant(*catalog);
    bool written = catalog->epoch().write_back().ok();
    add_tenant(*catalog);
    _exit(written && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_GT(fs::file_size(places_.database() + "-wal"), 0u);
  fs::copy(directory_ / "older", places_.database(), fs::copy_options::overwrite_existing);
  expect_refused("its file is");
}

TEST_F(PairingTest, AnotherDatabaseIsRefused) {
  { start(); }
  remove_database();
  { auto other = Catalog::open(places_.database()); }
  expect_refused("it");
}

TEST_F(PairingTest, ADatabaseThatWasCutOrDamagedIsRefused) {
  {
    auto catalog = start();
    for (int i = 0; i < 200; ++i) add_sandbox(*catalog);
  }
  copy_away();
  uint64_t size = fs::file_size(places_.database());
  for (uint64_t cut : {uint64_t{0}, uint64_t{1}, uint64_t{100}, size / 2, size - 4096}) {
    fs::resize_file(places_.database(), cut);
    EXPECT_FALSE(check_pair(places_).ok()) << cut;
    EXPECT_FALSE(Catalog::open(places_).ok()) << cut;
    copy_back();
  }
  EXPECT_TRUE(check_pair(places_).ok());
}

TEST_F(PairingTest, ALostEpochFileIsRefused) {
  { start(); }
  fs::remove(places_.epoch_file);
  expect_refused("there is no epoch file");
  ASSERT_TRUE(replace_file(places_.epoch_file, "", 0600).ok());
  expect_refused("is damaged");
}

TEST_F(PairingTest, WhoeverIsJoinedSetsAsideUntilThatIsDone) {
  {
    auto catalog = start();
    copy_away();
    add_tenant(*catalog);
  }
  copy_back();
  ASSERT_TRUE(join_pair(places_, 5).ok());
  {
    auto catalog = open();
    EXPECT_EQ(catalog->epoch().pairing(), Pairing::kSettingAside);
    EXPECT_EQ(catalog->epoch().joined_at_ms(), 5);
  }
  EXPECT_EQ(open()->epoch().pairing(), Pairing::kSettingAside)
      << "it was killed before it had done so";
  { start(); }
  EXPECT_EQ(open()->epoch().pairing(), Pairing::kPaired);
  remove_database();
  ASSERT_TRUE(join_pair(places_, 6).ok());
  EXPECT_EQ(open()->epoch().pairing(), Pairing::kSettingAside);
}

TEST_F(PairingTest, AFileThatIsReplacedWhileItIsOpenIsNoticed) {
  auto catalog = start();
  EXPECT_TRUE(catalog->epoch().check_place().ok());
  fs::rename(places_.database(), directory_ / "moved");
  EXPECT_EQ(catalog->epoch().check_place().error().reason(), "database_replaced");
  fs::copy(directory_ / "moved", places_.database());
  EXPECT_EQ(catalog->epoch().check_place().error().reason(), "database_replaced");
  fs::rename(directory_ / "moved", places_.database());
  EXPECT_TRUE(catalog->epoch().check_place().ok());
  fs::remove(places_.database() + "-wal");
  EXPECT_EQ(catalog->epoch().check_place().error().reason(), "database_replaced");
}

// Starts, changes rows of every durability, until it is killed.
[[noreturn]] void change_until_killed(const PairedPlaces& places) {
  while (true) {
    auto catalog = Catalog::open(places);
    if (!catalog) _exit(2);
    if ((*catalog)->epoch().pairing() != Pairing::kPaired &&
        !(*catalog)->epoch().finish_pairing().ok())
      _exit(3);
    for (int i = 0; i < 20; ++i) {
      SandboxRow row{.id = SandboxId::draw(),
                     .tenant = kLocalTenant,
                     .template_name = "python",
                     .image = sha256("image")};
      row.sequence = (*catalog)->sequence().draw();
      bool done = (*catalog)->sandboxes().insert(row).ok() && (*catalog)->epoch().publish().ok() &&
                  (*catalog)->tenants().insert(random_text(12), 1).ok() &&
                  (*catalog)->epoch().publish().ok();
      if (!done || (i % 7 == 0 && !(*catalog)->epoch().write_back().ok())) _exit(4);
    }
  }
}

TEST_F(PairingTest, AHealthyPairIsNeverRefusedWheneverItWasKilled) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    pid_t child = fork();
    if (child == 0) change_until_killed(places_);
    ASSERT_GT(child, 0);
    usleep(static_cast<useconds_t>(random() % 30'000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    auto checked = check_pair(places_);
    ASSERT_TRUE(checked.ok()) << round << ": " << checked.error().message();
  }
}

TEST(EpochFile, OneOfItsPlacesIsEnough) {
  TestDirectory directory;
  std::string path = directory / "epoch";
  std::string identity(32, 'a');
  auto file = EpochFile::create(path, {{identity, 1, 2}, "boot", 1});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write({{identity, 2, 3}, "boot", 1}).ok());
  ASSERT_TRUE(file->write({{identity, 3, 4}, "", 2}).ok());
  EXPECT_EQ((*EpochFile::read(path))->epoch, (Epoch{identity, 3, 4}));
  EXPECT_EQ((*EpochFile::read(path))->boot, "");
  std::string whole = read_file(path).value();
  for (size_t at = 0; at < whole.size(); at += 97) {
    std::string torn = whole;
    torn[at] = static_cast<char>(torn[at] ^ 1);
    ASSERT_TRUE(replace_file(path, torn, 0600).ok());
    auto mark = EpochFile::read(path);
    ASSERT_TRUE(mark.ok() && *mark) << at;
    EXPECT_GE((*mark)->epoch.synced, 2u) << at;
  }
  ASSERT_TRUE(replace_file(path, std::string(whole.size(), '\0'), 0600).ok());
  EXPECT_EQ(EpochFile::read(path).error().code(), Code::kCorrupt);
  EXPECT_FALSE(EpochFile::read(directory / "none")->has_value());
}

}  // namespace
}  // namespace atl::store
