// For tests of the real agent binary: a sandbox reduced to what the agent sees (a user, a
// process and a mount namespace, a delegated cgroup, the descriptors it is born with), and a daemon
// that talks to it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/birth_record.h"
#include "agent/protocol.h"
#include "base/eventually.h"
#include "base/fd.h"
#include "linux/cgroup_tree.h"

namespace atl::agent {

inline constexpr int kOpenFiles = 300;  // soft limit with which the agent is born

enum class Starter : uint8_t { kAgent, kSpawner };
// Who starts programs where this host's limits apply to them.
Starter limiting_starter();

struct TestLimits {
  uint64_t memory_bytes = 0;  // 0: none
  uint32_t pids = 0;          // 0: none; the spawner counts too
  OnOom on_oom = OnOom::kEndExec;
  uint64_t root_bytes = 0;  // 0: the host's root; else a root of its own on a tmpfs of this size
  bool is_noted = false;    // it is born with a socket for its notes, as in a machine
};

// A copy of a built program that every user may run: the build directory may be closed to them.
class ReachableProgram {
 public:
  explicit ReachableProgram(const std::string& built);
  ~ReachableProgram();
  ReachableProgram(const ReachableProgram&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string directory_, path_;
};

class TestSandbox {
 public:
  explicit TestSandbox(Starter starter, TestLimits limits = {});
  ~TestSandbox();
  TestSandbox(const TestSandbox&) = delete;

  // Why there is none here, or empty.
  const std::string& problem() const { return problem_; }
  Fd connect() const;
  pid_t agent_pid() const { return pid_; }
  pid_t spawner_pid() const { return spawner_pid_; }
  int notes() const { return notes_.get(); }
  // Names of the leaves that exist.
  std::vector<std::string> leaves() const;
  bool agent_is_alive() const;
  // Whether a program of that name is in that state (proc_pid_stat(5): S sleeps, T is stopped).
  bool has_program(const std::string& name, char state) const;
  // As the warden stops and lets go on what runs in it.
  bool freeze() const;
  bool thaw() const;

 private:
  bool make_cgroups();
  bool set_limits();
  std::string limiting_group(linux::Controller controller) const;
  std::array<Fd, 4> open_counters() const;
  void make_listener();
  void launch();
  void find_spawner();

  Starter starter_;
  TestLimits limits_;
  linux::CgroupTree tree_;
  std::string name_;
  std::string problem_;
  std::string group_;
  std::string directory_;
  Fd listener_;
  Fd pidfd_;
  Fd notes_;
  pid_t pid_ = 0;
  pid_t spawner_pid_ = 0;
};

// What the daemon holds of one exec, and whether it acknowledges output.
struct Record {
  enum class Acknowledge : uint8_t { kAtOnce, kNever } acknowledge = Acknowledge::kAtOnce;
  std::string out, err, speech;
  std::optional<uint32_t> pid;
  std::optional<Exit> exit;
  std::optional<StartFailed> failed;
  std::optional<InputTaken> input;
  int input_frames = 0;
  int started_frames = 0;
  int exit_frames = 0;
  bool ended() const { return exit.has_value() || failed.has_value(); }
};

class TestDaemon {
 public:
  explicit TestDaemon(const TestSandbox& sandbox) : sandbox_(sandbox) {}

  // Connects, takes the hello and answers with what it holds.
  Hello connect();
  Hello connect_without_welcome();
  void disconnect() { socket_.reset(); }
  // With a descriptor beside the first byte, if one is given.
  void send_raw(std::string_view bytes, int descriptor = -1);
  void send_welcome();
  // True when the agent has closed the connection.
  bool is_dropped(std::chrono::milliseconds timeout = test_timeout());

  void start(uint32_t exec, const Start& start);
  void acknowledge_output(uint32_t exec);
  void acknowledge_exit(uint32_t exec);

  // Takes frames until `done` or the time is over; false then.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::milliseconds timeout = test_timeout());
  // Takes at most one chunk of bytes; false if nothing came or the connection is gone.
  bool receive(int timeout_ms);
  // Runs to the end and acknowledges it.
  const Record& finish(uint32_t exec);

  Record& record(uint32_t exec) { return records_[exec]; }
  void forget(uint32_t exec) { records_.erase(exec); }
  // Gets the frames of channels.
  std::function<void(const Frame&)> on_channel;
  // A frame contradicted what was held: bytes doubled, skipped or changed.
  const std::string& contradiction() const { return contradiction_; }

 private:
  void take(const Frame& frame);
  void take_output(uint32_t exec, const Output& output);

  const TestSandbox& sandbox_;
  Fd socket_;
  FrameReader reader_{FrameReader::Side::kDaemon};
  std::map<uint32_t, Record> records_;
  std::optional<Hello> hello_;
  std::string contradiction_;
};

// Takes frames for so long, to see what does not come.
void linger(TestDaemon& daemon, std::chrono::milliseconds time);
// True when the agent has obeyed all that was sent and has told what it knew by then.
bool catches_up(TestDaemon& daemon);

Start shell(std::string script);

// Upper bound of what the agent may have counted since then, however busy the host is.
class Stopwatch {
 public:
  uint64_t elapsed_us() const {
    auto elapsed = std::chrono::steady_clock::now() - begin_;
    auto micros = std::chrono::ceil<std::chrono::microseconds>(elapsed).count();
    return static_cast<uint64_t>(micros) + 2;  // the agent rounds up too
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace atl::agent
