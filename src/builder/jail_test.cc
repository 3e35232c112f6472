#include "builder/jail.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/file.h"
#include "linux/capabilities.h"

namespace atl::builder {
namespace {

using Body = std::function<Result<std::string>()>;

class JailTest : public testing::Test {
 protected:
  JailTest() {
    char name[] = "/tmp/atoll-jail-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    for (const char* part : {"/build", "/ground"})
      std::filesystem::create_directory(directory_ + part);
    EXPECT_EQ(chown((directory_ + "/build").c_str(), kFirstId, kFirstId), 0);
    ground_.mount_point = directory_ + "/ground";
    ground_.host_network = *open_file("/proc/self/ns/net", O_RDONLY);
    log_ = *open_file("/dev/null", O_WRONLY);
  }
  ~JailTest() override { std::filesystem::remove_all(directory_); }

  Jail jail() const {
    return {.work = directory_ + "/build",
            .cache = "",
            .log = log_.get(),
            .kept = {},
            .deadline = std::chrono::steady_clock::now() + test_timeout()};
  }
  std::string run(const Body& body) { return run(jail(), body); }
  std::string run(const Jail& where, const Body& body) {
    auto answer = run_in_jail(ground_, where, body);
    return answer ? *answer : "error: " + answer.error().message();
  }

  std::string directory_;
  Ground ground_;
  Fd log_;
};

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

TEST_F(JailTest, AnswersAndFails) {
  EXPECT_EQ(run([] { return Result<std::string>("fine"); }), "fine");
  auto refused = run_in_jail(ground_, jail(), []() -> Result<std::string> {
    return Error(Code::kInvalid, "wrong input");
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalid);
  auto died = run_in_jail(ground_, jail(), []() -> Result<std::string> {
    raise(SIGKILL);
    _exit(3);
  });
  ASSERT_FALSE(died.ok());
  EXPECT_NE(died.error().code(), Code::kInvalid);
}

TEST_F(JailTest, SeesNothingOfTheHostButUsr) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(run([&]() -> Result<std::string> {
              std::string seen;
              for (const char* path : {"/etc/shadow", "/etc/hostname", "/home", "/var/cache",
                                       "/etc/apt", "/etc/ssl", "/etc/fstab"})
                if (access(path, F_OK) == 0) seen += std::string(path) + " ";
              if (access(self.c_str(), F_OK) == 0) seen += self;
              if (access("/usr/bin", F_OK) != 0) seen += "no /usr";
              return seen;
            }),
            "");
}

TEST_F(JailTest, IsAlone) {
  EXPECT_EQ(run([]() -> Result<std::string> {
              std::string pids;
              for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
                std::string name = entry.path().filename();
                if (isdigit(name[0])) pids += name + " ";
              }
              return pids;
            }),
            "1 ");
}

TEST_F(JailTest, HasNoNetworkUnlessItAsks) {
  Body count = []() -> Result<std::string> {
    constexpr ptrdiff_t kHeadLines = 2;
    ATOLL_TRY(std::string devices, read_file("/proc/net/dev"));
    return std::to_string(std::count(devices.begin(), devices.end(), '\n') - kHeadLines);
  };
  EXPECT_EQ(run(count), "1") << "lo, which is down";
  Jail with = jail();
  with.network = Jail::Network::kHost;
  EXPECT_EQ(run(with, count), *count());
}

TEST_F(JailTest, IsAnUnusedUserOutside) {
  EXPECT_EQ(run([]() -> Result<std::string> {
              std::ofstream("/build/made") << "x";
              return std::to_string(getuid());
            }),
            "0");
  struct stat facts;
  ASSERT_EQ(stat((directory_ + "/build/made").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, kFirstId);
}

TEST_F(JailTest, CannotMountMakeNamespacesOrDevices) {
  Jail where = jail();
  where.capabilities = linux::capability_mask({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER});
  EXPECT_EQ(run(where,
                []() -> Result<std::string> {
                  bool mounted = mount("none", "/tmp", "tmpfs", 0, nullptr) == 0;
                  bool unshared = unshare(CLONE_NEWUSER) == 0;
                  bool made = mknod("/build/null", S_IFCHR | 0666, (1 << 8) | 3) == 0;
                  return yes_or_no(mounted) + yes_or_no(unshared) + yes_or_no(made);
                }),
            "nonono");
}

// Its exit code, or 42: it could not be executed.
Result<std::string> run_own_program() {
  std::filesystem::copy_file("/usr/bin/true", "/build/program");
  const char* arguments[] = {"/build/program", nullptr};
  pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], const_cast<char**>(arguments));
    _exit(42);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return std::to_string(WEXITSTATUS(status));
}

TEST_F(JailTest, RunsNothingFromItsDirectory) { EXPECT_EQ(run(run_own_program), "42"); }

TEST_F(JailTest, WhatIsPinnedIsRunThereBehindTheSameFilter) {
  Jail where = jail();
  where.programs = Jail::Programs::kPinned;
  EXPECT_EQ(run(where, run_own_program), "0");
  EXPECT_EQ(run(where,
                []() -> Result<std::string> {
                  bool mounted = mount("none", "/tmp", "tmpfs", 0, nullptr) == 0;
                  bool unshared = unshare(CLONE_NEWUSER) == 0;
                  return yes_or_no(mounted) + yes_or_no(unshared);
                }),
            "nono");
}

TEST_F(JailTest, HasOnlyTheDescriptorsItIsGiven) {
  Fd secret(open("/etc/hostname", O_RDONLY));  // without O_CLOEXEC
  Fd given(open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  Jail where = jail();
  where.kept = {given.get()};
  EXPECT_EQ(run(where,
                [&]() -> Result<std::string> {
                  return yes_or_no(fcntl(secret.get(), F_GETFD) >= 0) +
                         yes_or_no(fcntl(given.get(), F_GETFD) >= 0);
                }),
            "noyes");
}

TEST_F(JailTest, DiesWithWhoeverStartedItAndSoDoesWhatItStarted) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t overseer = fork();
  if (overseer == 0) {
    close(ends[0]);
    Jail where = jail();
    where.kept = {ends[1]};
    (void)run_in_jail(ground_, where, [&]() -> Result<std::string> {
      if (fork() == 0) (void)!write(ends[1], "x", 1);
      pause();
      return std::string();
    });
    _exit(0);
  }
  close(ends[1]);
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  kill(overseer, SIGKILL);
  waitpid(overseer, nullptr, 0);
  // The end of the pipe: nobody holds the other side any more.
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST_F(JailTest, EndsAtItsDeadline) {
  Jail where = jail();
  where.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  auto late = run_in_jail(ground_, where, []() -> Result<std::string> {
    while (true) pause();
  });
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::kTimeout);
}

}  // namespace
}  // namespace atl::builder
