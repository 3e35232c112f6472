#include "warden/jail.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "agent/birth_record.h"
#include "base/file.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

constexpr const char* kAgentCapabilities = "00000000000c05fb";

// One isolate for all questions: they only look.
class JailView : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) return;
    directories_ = new Directories;
    auto image = directories_->make_image(kPlainImage);
    warden_ = new RunningWarden(*directories_, 0);
    id_ = SandboxId::draw();
    auto client = Client::connect(directories_->run());
    request_ = launch_request(*id_, image);
    Reply reply = client->ask(request_);
    EXPECT_EQ(reply.status, Status::kOk) << step_name(reply.step) << " " << reply.system_errno;
    report_ = ask("report");
  }
  static void TearDownTestSuite() {
    delete warden_;
    delete directories_;
  }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  }
  static std::string ask(const std::string& question) {
    return ask_probe(directories_->run(), *id_, question);
  }
  static std::string see(const std::string& key) { return value_of(report_, key); }

  static inline Directories* directories_ = nullptr;
  static inline RunningWarden* warden_ = nullptr;
  static inline std::optional<SandboxId> id_;
  static inline Request request_ = {};
  static inline std::string report_;
};

TEST_F(JailView, EveryNamespaceIsItsOwn) {
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    char host[64] = {};
    ASSERT_GT(readlink((std::string("/proc/self/ns/") + name).c_str(), host, sizeof host - 1), 0);
    EXPECT_NE(see(std::string("ns_") + name), host) << name;
    EXPECT_TRUE(see(std::string("ns_") + name).starts_with(name));
  }
}

TEST_F(JailView, HasExactlyTheAgentsCapabilitiesAndCannotGainAny) {
  EXPECT_EQ(see("CapEff"), kAgentCapabilities);
  EXPECT_EQ(see("CapPrm"), kAgentCapabilities);
  EXPECT_EQ(see("CapBnd"), kAgentCapabilities);
  EXPECT_EQ(see("CapInh"), "0000000000000000");
  EXPECT_EQ(see("CapAmb"), "0000000000000000");
  EXPECT_EQ(see("NoNewPrivs"), "1");
}

TEST_F(JailView, IsRootOfItsOwnIdsOnly) {
  EXPECT_EQ(see("Uid"), "0\t0\t0\t0");
  EXPECT_EQ(see("Gid"), "0\t0\t0\t0");
  EXPECT_EQ(see("Groups"), "");
  unsigned inside = 1, outside = 0, count = 0;
  ASSERT_EQ(sscanf(see("uid_map").c_str(), "%u %u %u", &inside, &outside, &count), 3);
  EXPECT_EQ(inside, 0u);
  EXPECT_GE(outside, 0x40000000u);
  EXPECT_LT(outside, 0x60000000u);
  EXPECT_EQ(outside % 65536, 0u);
  EXPECT_EQ(count, 65536u);
  EXPECT_EQ(see("gid_map"), see("uid_map"));
}

TEST_F(JailView, IsBornWithTheDeclaredDescriptorsOnly) {
  std::string fds = see("fds");
  // Without a spawner 6 is free for the connection on which it answers, else that is 11.
  bool spawner = ask("spawner") != "none";
  if (!spawner && fds == "0 1 2 3 4 5 6 7 8 10 12") return;  // this kernel has no memory.peak
  EXPECT_EQ(fds, spawner ? "0 1 2 3 4 5 6 7 8 9 10 11 12" : "0 1 2 3 4 5 6 7 8 9 10 12");
  EXPECT_EQ(see("fd0"), "/dev/null");
  EXPECT_TRUE(see("fd3").starts_with("socket:"));
  std::string birth = ask("birth");
  ASSERT_EQ(birth.size(), sizeof(agent::BirthRecord));
  EXPECT_EQ(birth.substr(8, 16), std::string(request_.nonce.begin(), request_.nonce.end()));
}

TEST_F(JailView, TheSpawnerIsConfinedTheSameWay) {
  std::string spawner = ask("spawner");
  if (spawner == "none") GTEST_SKIP() << "this host has no v1 controllers";
  EXPECT_EQ(value_of(spawner, "CapBnd"), kAgentCapabilities);
  EXPECT_EQ(value_of(spawner, "CapEff"), kAgentCapabilities);
  EXPECT_EQ(value_of(spawner, "NoNewPrivs"), "1");
  EXPECT_EQ(value_of(spawner, "fds"), "0 1 2 3");
  EXPECT_EQ(value_of(spawner, "cwd"), "/");
  EXPECT_EQ(value_of(spawner, "root_names"), see("root_names"));
  for (const char* name : {"cgroup", "mnt", "net", "pid", "user"})
    EXPECT_EQ(value_of(spawner, std::string("ns_") + name), see(std::string("ns_") + name));
  for (const char* controller : {"memory", "cpu", "pids"})
    EXPECT_NE(spawner.find(std::string(controller) + ":/"), std::string::npos);
  EXPECT_NE(spawner.find("/" + id_->string() + "\n"), std::string::npos) << spawner;
  EXPECT_EQ(report_.find("/" + id_->string() + "\n"), std::string::npos)
      << "the agent itself is not under the user's limits";
}

TEST_F(JailView, SeesNothingOfTheHost) {
  std::string mounts = report_.substr(report_.find("[mounts]"));
  EXPECT_EQ(mounts.find("ext4"), std::string::npos) << mounts;
  EXPECT_EQ(mounts.find("- cgroup"), std::string::npos);
  EXPECT_NE(mounts.find(" / / rw,nosuid,nodev"), std::string::npos) << mounts;
  EXPECT_NE(mounts.find("- overlay"), std::string::npos);
  EXPECT_NE(mounts.find("ptmxmode=666,max=64"), std::string::npos) << mounts;
  EXPECT_EQ(see("sys_names"), "");
  EXPECT_EQ(see("cwd"), "/");
  EXPECT_EQ(see("above_root_names"), see("root_names"));
  EXPECT_EQ(see("environment"), "0");
  EXPECT_EQ(see("hostname"), "atoll-" + id_->string().substr(0, 8));
  std::string network = report_.substr(report_.find("[network]"));
  EXPECT_NE(network.find("lo:"), std::string::npos);
  EXPECT_EQ(std::count(network.begin(), network.end(), ':'), 1) << network;
  EXPECT_EQ(ask("up"), "nowhere");
}

TEST_F(JailView, HasTheUsualDevicesAndCannotChangeThem) {
  std::string names = " " + see("dev_names") + " ";
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty", "pts", "shm", "fd",
                           "stdin", "stdout", "stderr", "ptmx"})
    EXPECT_NE(names.find(std::string(" ") + name + " "), std::string::npos) << name << names;
  EXPECT_EQ(ask("fill /dev/null 100"), "100 0");
  EXPECT_EQ(ask("fill /dev/full 100"), "0 " + std::to_string(ENOSPC));
  EXPECT_EQ(ask("fill /dev/file 1"), "0 " + std::to_string(EROFS));
  EXPECT_EQ(ask("fill /dev/shm/file 4096"), "4096 0");
  EXPECT_EQ(ask("fill /run/file 4096"), "4096 0");
}

TEST_F(JailView, LimitsOfTheProcessAreSet) {
  EXPECT_EQ(see("core"), "1 1");
  EXPECT_EQ(see("rtprio"), "0 0");
  EXPECT_EQ(see("nice"), "0 0");
  EXPECT_EQ(see("memlock"), "8388608 8388608");
  EXPECT_EQ(see("msgqueue"), "819200 819200");
  EXPECT_EQ(see("sigpending"),
            std::to_string(16 * request_.pids) + " " + std::to_string(16 * request_.pids));
  EXPECT_EQ(see("session"), "1");
  EXPECT_TRUE(see("nofile").starts_with("1024 ")) << see("nofile");
  EXPECT_EQ(see("SigBlk"), "0000000000000000");
  EXPECT_EQ(see("SigIgn"), "0000000000000000");
  EXPECT_EQ(see("Umask"), "0022");
}

TEST_F(JailView, MayStartProcessesInItsOwnGroups) {
  std::string group = ask("leaf");
  EXPECT_NE(group.find("0::/run/e1\n"), std::string::npos) << group;
}

TEST_F(JailView, WritesLandOnTheLayerAndTheImageStaysAsItWas) {
  EXPECT_EQ(ask("read /hello"), "from the image\n");
  EXPECT_EQ(ask("fill /hello 5"), "5 0");
  EXPECT_EQ(ask("read /hello"), "xxxxxthe image\n");
  std::string inside = "/proc/" + std::to_string(warden_->pid()) + "/root" + directories_->run();
  EXPECT_EQ(read_text(inside + "/pool/" + id_->string() + "/upper/hello"), "xxxxxthe image\n");
  EXPECT_EQ(read_text(inside + "/images/" + to_hex(request_.image) + "/hello"), "from the image\n");
}

TEST_F(JailView, TheDiskLimitHolds) {
  std::string answer = ask("fill /tmp/big 20000000");
  long long written = 0;
  int stopped = 0;
  ASSERT_EQ(sscanf(answer.c_str(), "%lld %d", &written, &stopped), 2);
  EXPECT_TRUE(stopped == EDQUOT || stopped == ENOSPC) << answer;
  EXPECT_LE(written, 8 << 20);
}

TEST_F(JailView, MaskedFilesReadEmptyAndCannotBeWritten) {
  const std::string kRefused = "0 " + std::to_string(EROFS);
  int files = 0;
  for (const char* name :
       {"cmdline",       "config.gz",   "diskstats",   "interrupts",  "kallsyms",    "kcore",
        "key-users",     "keys",        "kmsg",        "kpagecgroup", "kpagecount",  "kpageflags",
        "latency_stats", "modules",     "mtrr",        "partitions",  "sched_debug", "slabinfo",
        "timer_list",    "timer_stats", "vmallocinfo", "locks",       "cgroups",     "vmstat",
        "zoneinfo",      "swaps",       "devices",     "misc",        "iomem",       "softirqs",
        "sysrq-trigger"}) {
    std::string path = std::string("/proc/") + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    ++files;
    EXPECT_EQ(ask("read " + path), "") << path;
    EXPECT_EQ(ask("fill " + path + " 1"), kRefused) << path;
  }
  EXPECT_GT(files, 8);
  for (const char* name :
       {"acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "tty"}) {
    std::string path = std::string("/proc/") + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    EXPECT_EQ(ask("names " + path), "") << path;
    EXPECT_EQ(ask("fill " + path + "/file 1"), kRefused) << path;
  }
  EXPECT_EQ(ask("names /sys"), "");
  EXPECT_EQ(ask("fill /sys/file 1"), kRefused);
}

// Also what no list of this test names, because this kernel is newer than the test.
TEST_F(JailView, OfProcOnlyAFewFilesAreShown) {
  const std::set<std::string> kShown = {"cpuinfo", "filesystems", "loadavg", "meminfo", "mounts",
                                        "net",     "self",        "stat",    "sys",     "sysvipc",
                                        "uptime",  "thread-self", "version"};
  std::istringstream names(ask("names /proc"));
  int covered = 0;
  for (std::string name; names >> name;) {
    if (kShown.contains(name) || name.find_first_not_of("0123456789") == name.npos) continue;
    ++covered;
    EXPECT_TRUE(ask("read /proc/" + name).empty() || ask("names /proc/" + name).empty()) << name;
  }
  EXPECT_GT(covered, 20);
}

TEST_F(JailView, BootIdIsItsOwn) {
  const std::string kPath = "/proc/sys/kernel/random/boot_id";
  std::string own = ask("read " + kPath);
  EXPECT_EQ(own.size(), 37u) << own;
  EXPECT_NE(own, read_text(kPath));
  EXPECT_EQ(own, ask("read " + kPath));
  EXPECT_EQ(ask("fill " + kPath + " 1"), "0 " + std::to_string(EROFS));
  EXPECT_NE(ask("read /proc/sys/kernel/random/uuid"), ask("read /proc/sys/kernel/random/uuid"));
}

TEST_F(JailView, KernelSettingsCanBeReadButNotWritten) {
  // EACCES where the kernel knows only the host's root, EROFS from the mount behind that.
  for (const char* path :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
        "/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger"}) {
    if (access(path, F_OK) != 0) continue;
    std::string answer = ask(std::string("fill ") + path + " 1");
    EXPECT_TRUE(answer == "0 " + std::to_string(EACCES) || answer == "0 " + std::to_string(EROFS))
        << path << " " << answer;
  }
  for (const char* name : {"bus", "fs", "irq", "sys", "sys/net", "sysrq-trigger"}) {
    std::string path = std::string("/proc/") + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    EXPECT_NE(report_.find(" " + path + " ro,nosuid,nodev,noexec"), std::string::npos) << path;
  }
  EXPECT_NE(ask("read /proc/sys/kernel/ostype"), "");
  for (const char* name : {"meminfo", "cpuinfo", "stat", "loadavg", "uptime", "version",
                           "filesystems", "mounts", "net/dev", "self/status"})
    EXPECT_GT(ask(std::string("read /proc/") + name).size(), 8u) << name;
}

struct Hostile {
  const char* what;
  const char* target;
  std::string instead;  // of the directory; empty: nothing
};

class HostileImage : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileImage, AMountTargetThatIsNotARealDirectoryFailsTheLaunch) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  std::vector<std::string> names;
  for (const std::string& name : kPlainImage)
    if (name != GetParam().target) names.push_back(name);
  if (!GetParam().instead.empty()) names.push_back(GetParam().target + GetParam().instead);
  Directories directories;
  auto image = directories.make_image(names);
  RunningWarden warden(directories, 0);
  auto client = Client::connect(directories.run());
  // The first one also mounts the image, which stays.
  client->ask(launch_request(SandboxId::draw(), image));
  wait_until_childless(warden.pid());
  auto before = traces(directories.run(), warden.pid());
  Reply reply = client->ask(launch_request(SandboxId::draw(), image));
  EXPECT_EQ(reply.status, Status::kFailed);
  std::string target = GetParam().target;
  Step step = target == "dev" ? Step::kDevices : target == "sys" ? Step::kMasks : Step::kProc;
  EXPECT_EQ(reply.step, step) << step_name(reply.step);
  EXPECT_EQ(settled_traces(directories.run(), warden.pid(), before), before);
}

const Hostile kHostile[] = {
    {"DevLink", "dev", ">/etc"},
    {"DevFile", "dev", "="},
    {"NoDev", "dev", ""},
    {"ProcLink", "proc", ">../../../proc"},
    {"ProcFile", "proc", "="},
    {"NoProc", "proc", ""},
    {"RunLink", "run", ">/proc/self/root"},
    {"RunFile", "run", "="},
    {"NoRun", "run", ""},
    {"SysLink", "sys", ">/dev"},
    {"SysFile", "sys", "="},
    {"NoSys", "sys", ""},
};

INSTANTIATE_TEST_SUITE_P(Targets, HostileImage, ::testing::ValuesIn(kHostile),
                         [](const auto& hostile) { return hostile.param.what; });

}  // namespace
}  // namespace atl::warden
