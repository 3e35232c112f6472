#include "store/output_log.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr uint64_t kNoLimit = 1ull << 40;
constexpr uint64_t kBlock = 4096;

class OutputLogTest : public testing::Test {
 protected:
  OutputLogTest() : logs_(OutputLogs::open(path_, kNoLimit).value()) {}

  OutputLog open_log(OutputStream stream = OutputStream::kStdout) {
    return logs_.open_log(sandbox_, exec_, stream).value();
  }
  void reopen(uint64_t budget_bytes) { logs_ = OutputLogs::open(path_, budget_bytes).value(); }

  TestDirectory directory_;
  std::string path_ = directory_ / "logs";
  SandboxId sandbox_ = SandboxId::draw();
  ExecId exec_ = *ExecId::from_number(3);
  OutputLogs logs_;
};

TEST_F(OutputLogTest, BytesComeBackFromAnyOffset) {
  OutputLog log = open_log();
  EXPECT_EQ(log.size().value(), 0u);
  EXPECT_EQ(log.append("hello ").value(), 6u);
  EXPECT_EQ(log.append(std::string("w\0rld", 5)).value(), 11u);
  EXPECT_EQ(log.append("").value(), 11u);
  EXPECT_EQ(log.read(0, 100).value(), std::string("hello w\0rld", 11));
  EXPECT_EQ(log.read(6, 3).value(), std::string("w\0r", 3));
  EXPECT_EQ(log.read(11, 10).value(), "");
  EXPECT_EQ(log.read(1ull << 62, 10).value(), "");
  EXPECT_EQ(log.read(0, 0).value(), "");
}

TEST_F(OutputLogTest, FilesArePrivateAndWhereTheyBelong) {
  ASSERT_TRUE(open_log().append("x").ok());
  ASSERT_TRUE(open_log(OutputStream::kStderr).append("yy").ok());
  struct stat status;
  std::string folder = path_ + "/" + sandbox_.string();
  ASSERT_EQ(stat((folder + "/e3.stdout").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_size, 1);
  ASSERT_EQ(stat((folder + "/e3.stderr").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 2);
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(OutputLogTest, LengthOfTheFileIsTheTruthAfterARestart) {
  ASSERT_TRUE(open_log().append("before").ok());
  reopen(kNoLimit);
  OutputLog log = open_log();
  EXPECT_EQ(log.size().value(), 6u);
  EXPECT_EQ(log.append("!").value(), 7u);
  EXPECT_EQ(log.read(0, 10).value(), "before!");
}

TEST_F(OutputLogTest, ReaderFollowsTheWriterAndCannotWrite) {
  EXPECT_FALSE(logs_.find_log(sandbox_, exec_, OutputStream::kStdout)->has_value());
  OutputLog writer = open_log();
  auto reader = logs_.find_log(sandbox_, exec_, OutputStream::kStdout);
  ASSERT_TRUE(reader.ok() && reader->has_value());
  ASSERT_TRUE(writer.append("abc").ok());
  EXPECT_EQ((*reader)->read(1, 10).value(), "bc");
  EXPECT_FALSE((*reader)->append("x").ok());
  EXPECT_EQ(writer.size().value(), 3u);
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  EXPECT_FALSE(logs_.find_log(sandbox_, exec_, OutputStream::kStderr)->has_value());
}

TEST_F(OutputLogTest, RemovedSandboxLeavesNothingAndItsBudgetIsFree) {
  OutputLog log = open_log();
  ASSERT_TRUE(log.append(std::string(10'000, 'x')).ok());
  ASSERT_TRUE(open_log(OutputStream::kStderr).append("y").ok());
  EXPECT_EQ(logs_.used_bytes(), 4 * kBlock);
  EXPECT_EQ(logs_.sandboxes().value(), std::vector<SandboxId>{sandbox_});
  ASSERT_TRUE(logs_.remove_sandbox_logs(sandbox_).ok());
  EXPECT_EQ(logs_.used_bytes(), 0u);
  EXPECT_TRUE(logs_.sandboxes()->empty());
  EXPECT_TRUE(std::filesystem::is_empty(path_));
  EXPECT_TRUE(logs_.remove_sandbox_logs(sandbox_).ok());
  EXPECT_EQ(log.append("late").error().code(), Code::kNotFound);
  EXPECT_EQ(logs_.used_bytes(), 0u);
}

TEST_F(OutputLogTest, BudgetIsSharedAndCountedInBlocks) {
  reopen(3 * kBlock);
  OutputLog out = open_log();
  OutputLog err = open_log(OutputStream::kStderr);
  ASSERT_TRUE(out.append("x").ok());
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  ASSERT_TRUE(out.append(std::string(kBlock - 1, 'x')).ok());  // within the same block
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  ASSERT_TRUE(err.append(std::string(2 * kBlock, 'y')).ok());
  auto refused = out.append("z");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
  EXPECT_EQ(out.size().value(), kBlock);
  EXPECT_EQ(logs_.used_bytes(), 3 * kBlock);
}

TEST_F(OutputLogTest, NothingIsAppendedThatWouldFillTheDiskFurtherThanItMay) {
  OutputLog log = open_log();
  ASSERT_TRUE(log.append("x").ok());
  logs_.keep_free(1ull << 60);
  auto refused = log.append("y");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
  EXPECT_EQ(log.size().value(), 1u);
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  logs_.keep_free(0);
  EXPECT_TRUE(log.append("y").ok());
}

TEST_F(OutputLogTest, OneTenantMayHaveHalfOfTheBudget) {
  reopen(4 * kBlock);
  SandboxId other = SandboxId::draw();
  ASSERT_TRUE(logs_.set_owner(sandbox_, *TenantId::from_number(2)).ok());
  ASSERT_TRUE(logs_.set_owner(other, *TenantId::from_number(3)).ok());
  ASSERT_TRUE(open_log().append(std::string(2 * kBlock, 'x')).ok());
  EXPECT_EQ(open_log(OutputStream::kStderr).append("x").error().code(), Code::kExhausted);
  OutputLog log = logs_.open_log(other, exec_, OutputStream::kStdout).value();
  ASSERT_TRUE(log.append(std::string(2 * kBlock, 'x')).ok());
  // Counted again after a restart, and free again when it is removed.
  reopen(4 * kBlock);
  ASSERT_TRUE(logs_.set_owner(sandbox_, *TenantId::from_number(2)).ok());
  EXPECT_FALSE(open_log(OutputStream::kStderr).append("x").ok());
  ASSERT_TRUE(logs_.remove_sandbox_logs(sandbox_).ok());
  EXPECT_EQ(logs_.used_bytes(), 2 * kBlock);
  ASSERT_TRUE(logs_.set_owner(sandbox_, *TenantId::from_number(2)).ok());
  EXPECT_TRUE(open_log().append(std::string(2 * kBlock, 'x')).ok());
}

TEST_F(OutputLogTest, WhatWasDroppedIsKnownAfterARestart) {
  EXPECT_EQ(logs_.dropped(sandbox_, exec_).value(), DroppedOutput{});
  ASSERT_TRUE(logs_.set_dropped(sandbox_, exec_, {1, 2, 3}).ok());
  ASSERT_TRUE(logs_.set_dropped(sandbox_, exec_, {4, 5, 1ull << 40}).ok());
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  reopen(kNoLimit);
  DroppedOutput expected = {4, 5, 1ull << 40};
  EXPECT_EQ(logs_.dropped(sandbox_, exec_).value(), expected);
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  ASSERT_TRUE(logs_.remove_sandbox_logs(sandbox_).ok());
  EXPECT_EQ(logs_.used_bytes(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(OutputLogTest, BudgetCountsWhatWasThereBefore) {
  ASSERT_TRUE(open_log().append(std::string(2 * kBlock, 'x')).ok());
  reopen(kBlock);
  EXPECT_EQ(logs_.used_bytes(), 2 * kBlock);
  EXPECT_EQ(open_log().append("x").error().code(), Code::kExhausted);
  ASSERT_TRUE(logs_.remove_sandbox_logs(sandbox_).ok());
  EXPECT_EQ(logs_.used_bytes(), 0u);
}

TEST_F(OutputLogTest, LinksInPlaceOfAFileOrFolderAreRefused) {
  std::string victim = directory_ / "victim";
  ASSERT_TRUE(replace_file(victim, "untouched", 0600).ok());
  ASSERT_TRUE(make_directory(path_ + "/" + sandbox_.string(), 0700).ok());
  ASSERT_EQ(symlink(victim.c_str(), (path_ + "/" + sandbox_.string() + "/e3.stdout").c_str()), 0);
  EXPECT_FALSE(logs_.open_log(sandbox_, exec_, OutputStream::kStdout).ok());
  EXPECT_FALSE(logs_.find_log(sandbox_, exec_, OutputStream::kStdout).ok());

  SandboxId linked = SandboxId::draw();
  ASSERT_EQ(symlink(directory_.path().c_str(), (path_ + "/" + linked.string()).c_str()), 0);
  EXPECT_FALSE(logs_.open_log(linked, exec_, OutputStream::kStdout).ok());
  EXPECT_FALSE(logs_.remove_sandbox_logs(linked).ok());
  EXPECT_EQ(read_file(victim).value(), "untouched");
}

// A file size limit cuts a write short and then fails it, like a disk that becomes full half-way.
TEST_F(OutputLogTest, WriteCutShortIsTakenBack) {
  OutputLog log = open_log();
  ASSERT_TRUE(log.append("kept").ok());
  auto old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = {10'000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  auto cut = log.append(std::string(20'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);

  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().system_errno(), EFBIG);
  EXPECT_EQ(log.size().value(), 4u);
  EXPECT_EQ(logs_.used_bytes(), kBlock);
  EXPECT_EQ(log.append("!").value(), 5u);
  EXPECT_EQ(log.read(0, 10).value(), "kept!");
}

// In a child with a mount namespace of its own, so that the mount dies with it. The exit code says
// which expectation failed.
int fill_small_disk(const std::string& path) {
  if (unshare(CLONE_NEWNS) != 0) return 77;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k") != 0) return 77;
  auto logs = OutputLogs::open(path, kNoLimit);
  if (!logs) return 1;
  auto log = logs->open_log(SandboxId::draw(), *ExecId::from_number(1), OutputStream::kStdout);
  if (!log) return 2;
  if (log->append(std::string(1000, 'a')).value() != 1000) return 3;
  auto full = log->append(std::string(1 << 20, 'b'));
  if (full.ok() || full.error().code() != Code::kExhausted) return 4;
  if (full.error().system_errno() != ENOSPC) return 5;
  if (log->size().value() != 1000 || logs->used_bytes() != kBlock) return 6;
  if (log->append("c").value() != 1001) return 7;
  if (log->read(999, 10).value() != "ac") return 8;
  return 0;
}

TEST_F(OutputLogTest, FullDiskTakesBackWhatItCutShort) {
  std::string mount_point = directory_ / "small";
  ASSERT_TRUE(make_directory(mount_point, 0700).ok());
  pid_t child = fork();
  if (child == 0) _exit(fill_small_disk(mount_point));
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "may not mount here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "step of fill_small_disk";
}

TEST_F(OutputLogTest, AcknowledgedBytesSurviveKillNine) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  pid_t child = fork();
  if (child == 0) {
    OutputLog log = open_log();
    while (true) {
      auto end = log.append("0123456789");
      if (!end || write(ends[1], &*end, sizeof *end) != sizeof *end) _exit(1);
    }
  }
  ASSERT_GT(child, 0);
  Fd reader(ends[0]);
  Fd(ends[1]).reset();
  uint64_t acknowledged = 0;
  uint64_t end = 0;
  for (int count = 0; read(reader.get(), &end, sizeof end) == sizeof end; ++count) {
    acknowledged = end;
    if (count == 200) {
      ASSERT_EQ(kill(child, SIGKILL), 0);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_GT(acknowledged, 2000u);
  OutputLog log = open_log();
  EXPECT_GE(log.size().value(), acknowledged);
  EXPECT_EQ(log.read(acknowledged - 10, 10).value(), "0123456789");
}

}  // namespace
}  // namespace atl::store
