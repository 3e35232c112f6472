#include "cli/selftest/host_oracle.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <netinet/in.h>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/file.h"

namespace atl::cli::selftest {
namespace {

// Each canary is harmed as a hole in the wall would, and must say so once.
class HostOracleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "the host's files and log are for root";
    auto made = HostOracle::create(Places::beneath("/nonexistent"));
    ASSERT_TRUE(made.ok()) << made.error().message();
    oracle_ = std::move(*made);
    ASSERT_TRUE(oracle_->begin().ok());
    ASSERT_TRUE(changes().empty());
  }

  std::vector<std::string> changes() {
    auto found = oracle_->take_changes();
    EXPECT_TRUE(found.ok());
    // Another program on this host may mount something meanwhile; a test of its own looks at that.
    return found->canaries;
  }
  std::string told(const char* name) {
    return std::string(oracle_->environment().at(name).as_string());
  }

  std::unique_ptr<HostOracle> oracle_;
};

TEST_F(HostOracleTest, SeesAChangedFile) {
  std::string path = told("ATOLL_CANARY_FILE");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(changes(), std::vector<std::string>{path + " was changed"});
  EXPECT_TRUE(changes().empty());
  EXPECT_TRUE(oracle_->find_other_bytes()->empty());
  auto file = open_file(path, O_WRONLY | O_TRUNC);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_EQ(oracle_->find_other_bytes()->size(), 1u);
}

TEST_F(HostOracleTest, TellsAMountFromWhatOnlyAVictimWouldChange) {
  std::string path = told("ATOLL_CANARY_FILE");
  ASSERT_EQ(unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  changes();
  ASSERT_EQ(mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0);
  auto found = oracle_->take_changes();
  ASSERT_EQ(umount(path.c_str()), 0);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->canaries, std::vector<std::string>());
  auto is_the_mount = [&path](const std::string& change) {
    return change.starts_with("/proc/self/mountinfo changed: + ") &&
           change.find(path) != change.npos;
  };
  EXPECT_EQ(std::count_if(found->of_all.begin(), found->of_all.end(), is_the_mount), 1);
}

TEST_F(HostOracleTest, SeesAConnection) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(told("ATOLL_CANARY_PORT"))));
  Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_TRUE(changes().empty());
}

TEST_F(HostOracleTest, SeesTheDeathOfTheCanaryProcess) {
  ASSERT_EQ(kill(std::stoi(told("ATOLL_CANARY_PID")), SIGKILL), 0);
  // Its end is seen as soon as the kernel has made it.
  std::vector<std::string> found;
  (void)eventually([&] {
    found = changes();
    return !found.empty();
  });
  EXPECT_EQ(found, std::vector<std::string>{"the canary process was ended"});
}

TEST_F(HostOracleTest, KnowsItsSecretAndLeavesNothingBehind) {
  std::string path = told("ATOLL_CANARY_FILE");
  EXPECT_TRUE(oracle_->is_leak(*read_file(path)));
  EXPECT_FALSE(oracle_->is_leak(path));
  pid_t process = std::stoi(told("ATOLL_CANARY_PID"));
  oracle_.reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
  EXPECT_EQ(kill(process, 0), -1);
}

TEST(KernelLog, AComplaintHasItsTimeAndItsLine) {
  EXPECT_EQ(complaint_in("4,1234,5000042,-;WARNING: CPU: 0 PID: 1 at a.c:1\n SUBSYSTEM=x\n"),
            "kernel log at 5.000042 s: WARNING: CPU: 0 PID: 1 at a.c:1");
  EXPECT_EQ(complaint_in("4;BUG: without a time"), "kernel log: BUG: without a time");
  EXPECT_EQ(complaint_in("6,1235,5000043,-;usb 1-1: new device\n"), std::nullopt);
  EXPECT_EQ(complaint_in("WARNING: not a record"), std::nullopt);
}

TEST(KernelLog, TellsAnAccidentFromAProgramsCrash) {
  EXPECT_TRUE(is_complaint("WARNING: CPU: 0 PID: 12 at kernel/fork.c:1"));
  EXPECT_TRUE(is_complaint("BUG: kernel NULL pointer dereference, address: 0"));
  EXPECT_TRUE(is_complaint("Oops: 0002 [#1] PREEMPT SMP"));
  EXPECT_FALSE(is_complaint("traps: a[1] general protection fault ip:1 sp:1 error:0"));
  EXPECT_FALSE(is_complaint("a[1]: segfault at 0 ip 1 sp 1 error 4"));
  EXPECT_FALSE(is_complaint("Memory cgroup out of memory: Killed process 1 (a)"));
}

}  // namespace
}  // namespace atl::cli::selftest
