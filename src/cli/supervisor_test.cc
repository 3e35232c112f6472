#include "cli/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "cli/fixture_test.h"
#include "linux/lock_file.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

// As kHoldLock, and answers at argv[3].
constexpr const char* kAnswer =
    "import fcntl, os, socket, sys\n"
    "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
    "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "if os.path.exists(sys.argv[3]): os.unlink(sys.argv[3])\n"
    "server = socket.socket(socket.AF_UNIX)\n"
    "server.bind(sys.argv[3])\n"
    "server.listen(8)\n"
    "os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),\n"
    "         b'%d\\n' % os.getpid())\n"
    "while True:\n"
    "  asker = server.accept()[0]\n"
    "  asker.send(b'1')\n"
    "  asker.close()\n";

// Two real programs under a supervisor in a process of its own, as `atoll up` is.
class Supervised : public testing::Test {
 protected:
  ~Supervised() override {
    if (supervisor_ > 0) kill_supervisor(SIGKILL);
    for (const char* name : {"first", "second"}) end_holder(lock(name));
  }

  static void end_holder(const std::string& path) {
    auto holder = linux::find_lock_holder(path, geteuid());
    if (!holder || !*holder) return;
    EXPECT_TRUE(linux::send_signal((*holder)->pidfd.get(), SIGKILL).ok());
    EXPECT_TRUE(wait_for_end((*holder)->pidfd.get(), test_timeout()).value());
  }

  std::string lock(const std::string& name) const { return dir_ / (name + ".lock"); }
  std::string starts(const std::string& name) const { return dir_ / (name + ".pids"); }
  SupervisedProgram program(const std::string& name, const char* script) const {
    return {
        .name = "python3",
        .path = kPython,
        .arguments = {"-c", script, lock(name), starts(name), folder(name) + "/python3.heartbeat"},
        .identity = std::nullopt,
        .lock_path = lock(name),
        .log_path = dir_ / (name + ".log"),
        .heartbeat_directory = folder(name),
        .most_silence = std::chrono::seconds(2)};
  }
  // Where its heartbeat is, if it has one.
  std::string folder(const std::string& name) const {
    std::string path = dir_ / (name + ".run");
    std::filesystem::create_directories(path);
    return path;
  }

  void start(const char* second = kHoldLock) {
    std::vector<SupervisedProgram> programs = {program("first", kHoldLock),
                                               program("second", second)};
    supervisor_ = fork();
    if (supervisor_ != 0) return;
    auto log = LogFile::open(dir_ / "supervisor.log");
    dup2(log->fd(), STDERR_FILENO);
    auto supervisor = Supervisor::create(std::move(programs));
    _exit(supervisor && supervisor->run().ok() ? 0 : 1);
  }
  int kill_supervisor(int signal_number) {
    kill(supervisor_, signal_number);
    int status = -1;
    waitpid(std::exchange(supervisor_, 0), &status, 0);
    return status;
  }
  // The pid of the n-th start of a program, once it holds its lock.
  pid_t nth_start(const std::string& name, size_t n) {
    EXPECT_TRUE(eventually([&] { return read_pids(starts(name)).size() >= n; })) << name << n;
    return read_pids(starts(name)).at(n - 1);
  }
  bool holds_lock(const std::string& name) const {
    return linux::find_lock_holder(lock(name), geteuid()).value().has_value();
  }

  TempDir dir_;
  pid_t supervisor_ = 0;
};

TEST_F(Supervised, ADeadProgramIsStartedAgainAndTheOtherIsLeftAlone) {
  start();
  pid_t victim = nth_start("second", 1);
  nth_start("first", 1);
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_NE(nth_start("second", 2), victim);
  EXPECT_EQ(read_pids(starts("first")).size(), 1u);
}

TEST_F(Supervised, ProgramsOutliveAKilledSupervisorAndTheNextAdoptsThem) {
  start();
  pid_t first = nth_start("first", 1), second = nth_start("second", 1);
  kill_supervisor(SIGKILL);
  EXPECT_TRUE(holds_lock("first"));
  EXPECT_TRUE(holds_lock("second"));

  start();
  ASSERT_TRUE(eventually([&] {
    std::string log = read_text(dir_ / "supervisor.log");
    return log.find("adopted") != log.npos && log.find("adopted") != log.rfind("adopted");
  }));
  EXPECT_EQ(read_pids(starts("first")), std::vector<pid_t>{first});
  EXPECT_EQ(read_pids(starts("second")), std::vector<pid_t>{second});

  // An adopted program is watched although it is no child.
  ASSERT_EQ(kill(second, SIGKILL), 0);
  EXPECT_NE(nth_start("second", 2), second);
}

TEST_F(Supervised, SigtermEndsEverythingAlsoWhatWasAdopted) {
  start();
  nth_start("first", 1);
  nth_start("second", 1);
  kill_supervisor(SIGKILL);
  start();
  ASSERT_TRUE(eventually(
      [&] { return read_text(dir_ / "supervisor.log").find("adopted") != std::string::npos; }));
  EXPECT_EQ(kill_supervisor(SIGTERM), 0);
  EXPECT_FALSE(holds_lock("first"));
  EXPECT_FALSE(holds_lock("second"));
}

TEST_F(Supervised, EndsInReverseOrder) {
  start();
  pid_t first = nth_start("first", 1), second = nth_start("second", 1);
  EXPECT_EQ(kill_supervisor(SIGTERM), 0);
  std::string log = read_text(dir_ / "supervisor.log");
  size_t second_stop = log.rfind("\"pid\":" + std::to_string(second));
  size_t first_stop = log.rfind("\"pid\":" + std::to_string(first));
  ASSERT_NE(second_stop, log.npos);
  EXPECT_LT(second_stop, first_stop);
}

TEST_F(Supervised, AProgramThatAlwaysDiesIsTriedLessAndLess) {
  start(
      "import os, sys; os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), "
      "b'%d\\n' % os.getpid()); sys.exit(3)");
  nth_start("second", 5);
  std::string log = read_text(dir_ / "supervisor.log");
  EXPECT_NE(log.find("exit 3"), log.npos);
  size_t at = 0;
  for (const char* delay : {"10", "20", "40", "80"}) {
    at = log.find(std::string("\"restart_in_ms\":") + delay, at);
    EXPECT_NE(at, log.npos) << delay << " in\n" << log;
  }
}

TEST_F(Supervised, AProgramThatHangsIsKilledAndStartedAgainAndTheOtherIsLeftAlone) {
  start(kAnswer);
  pid_t victim = nth_start("second", 1);
  nth_start("first", 1);  // which answers nobody, and is not known ever to have answered
  ASSERT_EQ(kill(victim, SIGSTOP), 0);
  EXPECT_NE(nth_start("second", 2), victim);
  EXPECT_EQ(read_pids(starts("first")).size(), 1u);
  std::string log = read_text(dir_ / "supervisor.log");
  EXPECT_NE(log.find("does not answer and is killed"), log.npos) << log;
}

TEST_F(Supervised, AnAdoptedProgramThatHangsIsKilledToo) {
  start(kAnswer);
  pid_t victim = nth_start("second", 1);
  kill_supervisor(SIGKILL);
  ASSERT_EQ(kill(victim, SIGSTOP), 0);
  start(kAnswer);
  EXPECT_NE(nth_start("second", 2), victim);
}

TEST_F(Supervised, ForeignOrphansAreReaped) {
  // The program leaves an orphan behind that ends at once; as a subreaper the supervisor gets it.
  start(
      "import os, subprocess, sys, time\n"
      "child = os.fork()\n"
      "if child == 0:\n"
      "  orphan = os.fork()\n"
      "  if orphan == 0: time.sleep(0.3); os._exit(0)\n"
      "  os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), b'%d\\n' % "
      "orphan)\n"
      "  os._exit(0)\n"
      "os.waitpid(child, 0)\n"
      "time.sleep(600)\n");
  pid_t orphan = nth_start("second", 1);
  EXPECT_TRUE(eventually([&] { return kill(orphan, 0) != 0; }));
  kill_supervisor(SIGTERM);
}

TEST(Supervisor, AMissingBinaryIsAnErrorAtOnce) {
  auto supervisor = Supervisor::create({{.name = "x",
                                         .path = "/nonexistent/x",
                                         .arguments = {},
                                         .identity = std::nullopt,
                                         .lock_path = "",
                                         .log_path = ""}});
  EXPECT_EQ(supervisor.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace atl::cli
