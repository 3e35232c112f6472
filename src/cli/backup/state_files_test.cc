#include "cli/backup/state_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/fixture_test.h"

namespace atl::cli::backup {
namespace {

std::vector<std::string> taken(const Places& places) {
  std::vector<std::string> paths;
  Identity self{geteuid(), getegid()};
  auto done = for_each_state_file(places, self, [&](const StateFile& file) -> Result<void> {
    paths.push_back(file.path);
    return {};
  });
  return done ? paths : std::vector<std::string>{"failed: " + done.error().message()};
}

struct State {
  State() {
    for (const char* path : {"daemon", "daemon/outputs", "daemon/outputs/sb", "templates",
                             "templates/python", "logs", "images"})
      EXPECT_EQ(mkdir((dir / path).c_str(), 0755), 0) << path;
    for (const char* path :
         {"daemon/atoll.db", "daemon/atoll.db-wal", "daemon/local.key",
          "daemon/outputs/sb/e1.stdout", "templates/.lock", "templates/python/image",
          "logs/atolld.log", "pool.btrfs", "receipt.key"})
      write_text(dir / path, path);
  }
  Places places() const { return Places::beneath(dir.path()); }
  TempDir dir;
};

TEST(StateFiles, TakesWhatHasARuleAndLeavesTheDatabaseToSqlite) {
  State state;
  EXPECT_EQ(taken(state.places()),
            (std::vector<std::string>{"daemon/local.key", "daemon/outputs/sb/e1.stdout",
                                      "templates/python/image", "receipt.key"}));
  EXPECT_EQ(unknown_names(state.places()).value(), std::vector<std::string>{});
}

TEST(StateFiles, NamesWhatItDoesNotKnow) {
  State state;
  write_text(state.dir / "notes.txt", "");
  write_text(state.dir / "daemon/new-kind-of-state", "");
  EXPECT_EQ(unknown_names(state.places()).value(),
            (std::vector<std::string>{"notes.txt", "daemon/new-kind-of-state"}));
}

TEST(StateFiles, FollowsNoLinkAndTakesNothingButFiles) {
  for (const char* path :
       {"daemon/local.key", "daemon/outputs/sb/e1.stdout", "daemon/outputs/sb"}) {
    State state;
    std::string victim = state.dir / path;
    ASSERT_EQ(rename(victim.c_str(), (victim + ".moved").c_str()), 0);
    ASSERT_EQ(symlink("/etc", victim.c_str()), 0);
    EXPECT_TRUE(taken(state.places())[0].starts_with("failed: ")) << path;
    ASSERT_EQ(unlink(victim.c_str()), 0);
    ASSERT_EQ(mkfifo(victim.c_str(), 0600), 0);
    EXPECT_TRUE(taken(state.places())[0].starts_with("failed: ")) << path;
  }
}

TEST(StateFiles, RefusesAFileOfAnotherOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: it gives a file away";
  State state;
  ASSERT_EQ(chown((state.dir / "daemon/outputs/sb/e1.stdout").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(taken(state.places())[0].starts_with("failed: "));
}

TEST(StateFiles, PathsThatAreNotCleanHaveNoRule) {
  EXPECT_NE(find_rule("images/x.erofs"), nullptr);
  for (const char* path :
       {"", "images", "images/", "/images/x", "images//x", "images/../x", "images/.x",
        "daemon/atoll.db/x", "daemon/other", "logs/x", "x", "images/x\ny", "../images/x"})
    EXPECT_EQ(find_rule(path), nullptr) << path;
}

}  // namespace
}  // namespace atl::cli::backup
