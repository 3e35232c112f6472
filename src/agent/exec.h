// One exec: a program from its start to the acknowledgement of its end. Knows nothing of
// connections; what was told to the daemon is only a set of flags, so that a new connection can be
// told again.
//
//   kStarting → kRunning → kDraining → kOver    the main process ended, its output is being taken
//            ↘ kFailed                          the platform could not start it
#pragma once

#include <array>
#include <optional>

#include "agent/channel_protocol.h"
#include "agent/input_pipe.h"
#include "agent/output_pipe.h"
#include "agent/poll_set.h"
#include "agent/process_start.h"
#include "agent/program.h"
#include "agent/protocol.h"
#include "agent/remains.h"
#include "agent/speech_pipe.h"
#include "base/clock.h"
#include "base/fd.h"

namespace atl::agent {

// What a started program is made of, on the agent's side.
struct Launched {
  pid_t pid;
  Fd pidfd;
  Fd stdin_pipe;   // none: there is nothing to read
  Fd stdout_pipe;  // of a terminal: its master, and that is the only output
  Fd stderr_pipe;
  Fd report;
  Fd control;  // of a controlled program
};

class Exec {
 public:
  Exec(Leaf leaf, const Start& start, const Counts& before);

  // An error is the platform's: it has failed to start.
  void launched(Result<Launched> outcome);

  void add_watches(PollSet& polls) const;
  // The start report or output has arrived. `null_device` swallows output beyond the limit. Or its
  // machine begins with the memory of another (kRebirth): what waits outlives the next new
  // connection, if that welcomes it. Then it is told to make anew what must not be the same twice,
  // before it can be told anything else, and says that it is ready once more.
  void handle(Source source, int null_device);
  // True if it ended in a way that a full layer might explain: its end waits for layer_checked().
  [[nodiscard]] bool reaped(const Death& death, Counters& counters, int null_device);
  void layer_checked(bool full, int null_device);
  // Takes the output that is there, as far as its windows allow. False: some of it is not sent.
  bool settle(int null_device);

  // kWaits: a controlled program that is up and has not begun.
  enum class State : uint8_t { kWaits, kRuns, kEnded };
  State state() const {
    if (phase_ == Phase::kOver || phase_ == Phase::kFailed) return State::kEnded;
    return waits_ && phase_ == Phase::kRunning ? State::kWaits : State::kRuns;
  }
  // Once, when it has ended: what it leaves behind.
  std::optional<Remains> take_remains();

  Program& program() { return program_; }

  // A descriptor of the control socket, for a channel. kNotFound: it has none.
  Result<Fd> open_control(const std::optional<Beginning>& begins, const Counts& before);

  // A frame from the daemon for this exec. False: it breaks the protocol.
  [[nodiscard]] bool obey(const Frame& frame, Counters& counters);

  // The next frame for the daemon, or nothing more just now.
  std::optional<std::string> next_report();
  // A new connection: all that is not acknowledged is told again, output from these offsets on.
  bool resume(const ExecOffsets& offsets);
  ExecOffsets offsets() const;
  // On this connection or one before: only then can the daemon acknowledge it.
  bool end_was_told() const { return end_was_told_; }

 private:
  enum class Phase : uint8_t { kStarting, kRunning, kDraining, kOver, kFailed };

  OutputPipe& output(Stream stream) { return outputs_[static_cast<size_t>(stream)]; }
  const OutputPipe& output(Stream stream) const { return outputs_[static_cast<size_t>(stream)]; }
  OutputStream& stream(Stream stream) {
    return stream == Stream::kSpeech ? speech_.stream() : output(stream).stream();
  }
  uint32_t number() const { return program_.leaf().number(); }

  bool renew();
  bool acknowledge(std::string_view payload);
  bool signal(std::string_view payload);
  bool grant(std::string_view payload, Counters& counters);
  bool resize(std::string_view payload);
  void fail(StartFailed failed);
  void read_report();
  void report_arrived(std::optional<StartReport> report);
  void explain_failure(const StartReport& report);
  void check_output_limit();
  void drain(int null_device);
  void take_printed(int null_device);
  void begin(const Beginning& begins, const Counts& before);
  void finish_if_drained();
  std::optional<std::string> next_output(Stream stream, std::string_view unsent);

  Program program_;
  Phase phase_ = Phase::kStarting;
  std::string name_;
  std::string directory_;
  std::string user_;
  bool has_terminal_;
  InputPipe input_;
  std::array<OutputPipe, 2> outputs_;
  SpeechPipe speech_;
  OnOutputLimit on_output_limit_;
  bool asks_for_layer_ = false;
  Fd report_;
  Fd control_;
  ControlMode control_mode_;
  bool waits_ = false;                   // a controlled program that has not begun
  bool is_reborn_ = false;               // and nobody has connected since
  std::optional<uint8_t> failure_code_;  // the program could not be executed
  StartFailed failed_ = {};
  Exit exit_ = {};
  SteadyTime requested_at_, executed_at_, exited_at_;

  bool started_told_ = false;
  bool end_told_ = false;
  bool end_was_told_ = false;
  Stream next_stream_ = Stream::kStdout;
  bool remains_taken_ = false;
};

}  // namespace atl::agent
