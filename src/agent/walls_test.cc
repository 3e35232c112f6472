// What the walls around a program let through, with the real agent, kernel and filter.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"
#include "base/file.h"
#include "linux/file_rules.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;

class Walls : public testing::TestWithParam<Starter> {
 protected:
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
    // The build directory need not be reachable for the sandbox's users.
    char path[] = "/tmp/atoll-walls-test-XXXXXX";
    directory_ = mkdtemp(path);
    chmod(path, 0777);
    fs::copy_file(ATOLL_CALLER_PATH, directory_ + "/caller");
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }
  Record run(Start start, const std::string& user = "user") {
    start.user = user;
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    return daemon_.finish(exec);
  }
  Record call(std::vector<std::string> arguments, const std::string& user = "user") {
    Start start = shell("");
    start.arguments = {directory_ + "/caller"};
    start.arguments.insert(start.arguments.end(), arguments.begin(), arguments.end());
    return run(start, user);
  }
  std::string answer(long number, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"call", std::to_string(number)});
    std::string as_user = call(arguments).out, as_root = call(arguments, "root").out;
    return as_user == as_root ? as_user : "user " + as_user + "root " + as_root;
  }

  TestSandbox sandbox_{GetParam()};
  TestDaemon daemon_{sandbox_};
  std::string directory_;
  uint32_t next_exec_ = 1;
};

INSTANTIATE_TEST_SUITE_P(StartedBy, Walls, testing::Values(Starter::kAgent, Starter::kSpawner),
                         [](const auto& starter) {
                           return starter.param == Starter::kAgent ? "Agent" : "Spawner";
                         });

const std::string kNoPermission = std::to_string(EPERM) + "\n";
const std::string kNoCall = std::to_string(ENOSYS) + "\n";

TEST_P(Walls, RefusedCallsReallyFail) {
  // Each of these succeeds, or fails another way, without the filter.
  for (long number : {SYS_ptrace, SYS_keyctl, SYS_vmsplice, SYS_userfaultfd, SYS_memfd_secret})
    EXPECT_EQ(answer(number), kNoPermission) << number;
  EXPECT_EQ(answer(SYS_unshare, {"0x10000000"}), kNoPermission) << "CLONE_NEWUSER";
  EXPECT_EQ(answer(SYS_unshare, {"0"}), "ok\n");
  EXPECT_EQ(answer(SYS_clone3), kNoCall);
  EXPECT_EQ(answer(SYS_io_uring_setup, {"1"}), kNoCall);
  EXPECT_EQ(answer(500), kNoCall);
  EXPECT_EQ(answer(SYS_socket, {"38", "5", "0"}), std::to_string(EAFNOSUPPORT) + "\n") << "AF_ALG";
  EXPECT_EQ(answer(SYS_socket, {"16", "3", "0"}), std::to_string(EAFNOSUPPORT) + "\n");
  EXPECT_EQ(answer(SYS_io_setup, {"1"}), kNoCall);
  EXPECT_EQ(answer(SYS_mbind), kNoCall);
  EXPECT_EQ(answer(SYS_personality, {"0x400000"}), kNoPermission);
  EXPECT_EQ(answer(SYS_getpid), "ok\n");
}

TEST_P(Walls, ForeignArchitecturesAreKilled) {
  for (const char* way : {"int80", "x32"}) {
    Record done = call({way});
    ASSERT_TRUE(done.exit) << way;
    EXPECT_EQ(done.exit->ending, Ending::kSignaled) << way;
    EXPECT_EQ(done.exit->status, SIGSYS) << way;
    EXPECT_EQ(done.out, "") << way;
  }
}

TEST_P(Walls, ThereIsNoOwnFilterAndTryingOpensNothing) {
  EXPECT_EQ(call({"own-filter", std::to_string(SYS_keyctl)}).out, "no filter " + kNoPermission);
  EXPECT_EQ(call({"own-filter", std::to_string(SYS_getpid)}).out, "no filter ok\n");
}

TEST_P(Walls, EveryProgramHasOneFilterAndTheAgentNone) {
  EXPECT_EQ(run(shell("grep -E '^Seccomp' /proc/self/status")).out,
            "Seccomp:\t2\nSeccomp_filters:\t1\n");
  auto agent = read_file("/proc/" + std::to_string(sandbox_.agent_pid()) + "/status");
  ASSERT_TRUE(agent.ok());
  EXPECT_NE(agent->find("Seccomp:\t0\n"), std::string::npos);
}

TEST_P(Walls, NoDeviceNodesAndNoIoctlOutsideDev) {
  std::string script = "mkfifo " + directory_ + "/fifo && stat -c %F " + directory_ + "/fifo; " +
                       "mknod " + directory_ + "/null c 1 3 2>&1 | sed 's/.*: //'";
  EXPECT_EQ(run(shell(script)).out, "fifo\nOperation not permitted\n");
  if (linux::file_rights(*linux::landlock_abi()) & linux::kDeviceIoctl) {
    // A device node outside /dev, which no sandbox has: only the rules forbid its ioctl.
    ASSERT_EQ(mknod((directory_ + "/entropy").c_str(), S_IFCHR | 0666, 1 << 8 | 9), 0);
    chmod((directory_ + "/entropy").c_str(), 0666);
    std::string ask =
        "python3 -c 'import fcntl,sys\ntry: fcntl.ioctl(open(sys.argv[1], \"rb\", 0), "
        "0x80045200, bytes(4)); print(\"ok\")\nexcept OSError as e: print(e.errno)' ";
    EXPECT_EQ(run(shell(ask + directory_ + "/entropy")).out, std::to_string(EACCES) + "\n");
    EXPECT_EQ(run(shell(ask + "/dev/urandom")).out, "ok\n");
  }
}

TEST_P(Walls, ExecsOfOneSandboxMaySignalEachOther) {
  daemon_.start(100, shell("echo up; sleep 60"));
  daemon_.run_until([&] { return !daemon_.record(100).out.empty(); });
  EXPECT_EQ(run(shell("kill " + std::to_string(*daemon_.record(100).pid) + " && echo done")).out,
            "done\n");
  EXPECT_TRUE(daemon_.run_until([&] { return daemon_.record(100).ended(); }));
}

TEST_P(Walls, ProgramsAreTheFirstVictimsWhenMemoryRunsOut) {
  EXPECT_EQ(run(shell("cat /proc/self/oom_score_adj")).out, "500\n");
}

// Needs nothing from the network; each prints one word.
TEST_P(Walls, OrdinaryProgramsGoOnWorking) {
  const char* kPython =
      "python3 -c '\n"
      "import asyncio, multiprocessing as mp, os, socket, sqlite3, subprocess, tempfile, "
      "threading\n"
      "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
      "assert subprocess.run([\"true\"]).returncode == 0\n"
      "with mp.get_context(\"spawn\").Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]\n"
      "asyncio.run(asyncio.sleep(0))\n"
      "c = sqlite3.connect(tempfile.mkdtemp() + \"/x\"); c.execute(\"create table t (a)\")\n"
      "a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"\n"
      "assert os.memfd_create(\"m\") > 0 and os.eventfd(0) > 0 and os.pidfd_open(os.getpid()) > 0\n"
      "print(\"good\")'";
  Record python = run(shell(kPython));
  EXPECT_EQ(python.out, "good\n") << python.err;
  Record shells =
      run(shell("set -e; bash -c 'echo $((1+1)) | cat >/dev/null'; "
                "d=$(mktemp -d); cp /etc/passwd $d/a; mv $d/a $d/b; ls -la $d >/dev/null; "
                "tar -cf $d/t -C /etc passwd; timeout 60 true; setsid true; nice true; "
                "rm -r $d; echo good"));
  EXPECT_EQ(shells.out, "good\n") << shells.err;
}

}  // namespace
}  // namespace atl::agent
