#include "agent/exec.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/file_protocol.h"
#include "agent/terminal.h"

namespace atl::agent {
namespace {

constexpr uint8_t kNotFoundCode = 127;
constexpr uint8_t kNotExecutableCode = 126;
constexpr uint64_t kMuchWrittenBytes = 1024 * 1024;
constexpr std::string_view kRenew("\xfe\xff\xff\xff");  // longer than any message

uint64_t micros_between(SteadyTime from, SteadyTime to) {
  // Rounded up: nothing takes no time.
  auto micros = std::chrono::ceil<std::chrono::microseconds>(to - from).count();
  return static_cast<uint64_t>(std::max<int64_t>(0, micros));
}

SteadyTime now() { return std::chrono::steady_clock::now(); }

}  // namespace

Exec::Exec(Leaf leaf, const Start& start, const Counts& before)
    : program_(leaf, start, before),
      name_(start.arguments[0]),
      directory_(start.directory.empty() ? "home of " + start.user : start.directory),
      user_(start.user),
      has_terminal_(start.terminal.has_value()),
      input_(start.input, start.input_mode),
      outputs_{OutputPipe(start.output_limit_bytes), OutputPipe(start.output_limit_bytes)},
      on_output_limit_(start.on_output_limit),
      control_mode_(start.control),
      waits_(start.control == ControlMode::kWaits),
      requested_at_(now()) {}

void Exec::launched(Result<Launched> outcome) {
  if (!outcome) return fail({outcome.error().system_errno(), outcome.error().message()});
  Launched& launched = *outcome;
  program_.launched(launched.pid, std::move(launched.pidfd));
  executed_at_ = now();
  report_ = std::move(launched.report);
  control_ = std::move(launched.control);
  if (control_mode_ == ControlMode::kSpeaks) speech_.open(std::move(control_));
  bool terminal = has_terminal_;
  auto kind = terminal ? OutputPipe::Kind::kTerminal : OutputPipe::Kind::kPipe;
  output(Stream::kStdout).open(std::move(launched.stdout_pipe), kind);
  output(Stream::kStderr).open(std::move(launched.stderr_pipe), kind);
  input_.open(std::move(launched.stdin_pipe),
              terminal ? InputPipe::Kind::kTerminal : InputPipe::Kind::kPipe);
}

void Exec::fail(StartFailed failed) {
  failed_ = std::move(failed);
  phase_ = Phase::kFailed;
  program_.let_go();
  report_.reset();
  control_.reset();
  input_.close();
  for (OutputPipe& pipe : outputs_) pipe.release().reset();
  speech_.close();
}

void Exec::add_watches(PollSet& polls) const {
  if (report_) polls.add(report_.get(), POLLIN, {Source::kReport, number()});
  const OutputPipe& out = output(Stream::kStdout);
  if (out.wants_read()) polls.add(out.fd(), POLLIN, {Source::kStdout, number()});
  const OutputPipe& err = output(Stream::kStderr);
  if (err.wants_read()) polls.add(err.fd(), POLLIN, {Source::kStderr, number()});
  if (speech_.wants_notice()) polls.add(speech_.fd(), POLLIN, {Source::kSpeech, number()});
  short events = input_.wants_write() ? POLLOUT : 0;
  if (input_.fd() >= 0) polls.add(input_.fd(), events, {Source::kStdin, number()});
}

void Exec::handle(Source source, int null_device) {
  // Before output too: the program's execve came before its first byte and must be told first.
  read_report();
  if (source == Source::kStdout) output(Stream::kStdout).read_some(null_device);
  if (source == Source::kStderr) output(Stream::kStderr).read_some(null_device);
  if (source == Source::kStdin) input_.ready();
  if (source == Source::kRebirth) is_reborn_ = waits_;
  if (source == Source::kSpeech) {
    speech_.noticed(outputs_);
    take_printed(null_device);
  }
  speech_.take(outputs_);
  check_output_limit();
  drain(null_device);
}

void Exec::check_output_limit() {
  if (on_output_limit_ == OnOutputLimit::kCut || !program_.pid()) return;
  for (const OutputPipe& pipe : outputs_)
    if (pipe.stream().cut() > 0) program_.end(Cause::kOutput);
}

void Exec::read_report() {
  if (phase_ != Phase::kStarting) return;
  StartReport report = {};
  ssize_t count = read(report_.get(), &report, sizeof report);
  // A reaped process has closed its end, even if the spawner has not closed its copy yet.
  if (count < 0 && errno == EAGAIN && program_.pid()) return;
  report_.reset();
  report_arrived(count == sizeof report ? std::optional(report) : std::nullopt);
}

void Exec::report_arrived(std::optional<StartReport> report) {
  if (report && !is_programs_fault(report->step))
    return fail({report->system_errno, std::string(step_name(report->step))});
  // Of a program that has ended by now nobody saw when it was executed, only when it was made.
  if (program_.pid()) executed_at_ = now();
  phase_ = Phase::kRunning;
  if (report) explain_failure(*report);
}

void Exec::explain_failure(const StartReport& report) {
  bool user = report.step == StartStep::kUser;
  failure_code_ = report.system_errno == ENOENT && !user ? kNotFoundCode : kNotExecutableCode;
  std::string text = "atoll: ";
  if (user) {
    text += "no such user: " + user_;
  } else {
    text += step_name(report.step);
    text += ' ';
    text += report.step == StartStep::kDirectory ? directory_ : name_;
    text += ": ";
    text += strerror(report.system_errno);
  }
  text += has_terminal_ ? "\r\n" : "\n";
  stream(has_terminal_ ? Stream::kStdout : Stream::kStderr).append(text);
}

Result<Fd> Exec::open_control(const std::optional<Beginning>& begins, const Counts& before) {
  if (!control_) return Error(Code::kNotFound, "open control", ENOTSOCK);
  if (begins && !waits_) return Error(Code::kConflict, "begin", EALREADY);
  if (begins) begin(*begins, before);
  Fd copy(fcntl(control_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return Error(Code::kSystem, "open control", errno);
  return copy;
}

void Exec::begin(const Beginning& begins, const Counts& before) {
  waits_ = false;
  program_.begin(begins, before);
  requested_at_ = executed_at_ = now();
  on_output_limit_ = begins.on_output_limit;
  for (OutputPipe& pipe : outputs_) pipe.stream().set_limit(begins.output_limit_bytes);
}

bool Exec::grant(std::string_view payload, Counters& counters) {
  auto granted = decode_grant(payload);
  if (!granted) return false;
  if (waits_) {
    begin(Beginning(), counters.read());
    // An empty message, in the words of the runtimes: it is to speak from now on.
    (void)send(control_.get(), "\0\0\0\0", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
    speech_.open(std::move(control_));
  }
  stream(Stream::kStdout).set_limit(granted->stdout_limit);
  stream(Stream::kStderr).set_limit(granted->stderr_limit);
  return true;
}

bool Exec::settle(int null_device) {
  drain(null_device);
  if (phase_ == Phase::kFailed) return true;
  take_printed(null_device);
  check_output_limit();
  speech_.take(outputs_);
  for (OutputPipe& pipe : outputs_) {
    bool full = pipe.stream().room() == 0 && !pipe.stream().limit_reached();
    if (full || !pipe.stream().unsent().empty()) return false;
  }
  return true;
}

void Exec::take_printed(int null_device) {
  for (OutputPipe& pipe : outputs_) pipe.read_present(null_device);
}

bool Exec::reaped(const Death& death, Counters& counters, int null_device) {
  SteadyTime::duration frozen = program_.reaped(death, counters, exit_);
  input_.close();
  control_.reset();
  if (waits_) exit_.cause = Cause::kUnbegun;
  read_report();
  if (phase_ != Phase::kRunning) return false;
  exited_at_ = now();
  if (failure_code_ && exit_.ending == Ending::kExited) exit_.status = *failure_code_;
  exit_.start_us = micros_between(requested_at_, executed_at_);
  exit_.wall_us = micros_between(executed_at_ + frozen, exited_at_);
  phase_ = Phase::kDraining;
  bool well = exit_.ending == Ending::kExited && exit_.status == 0;
  asks_for_layer_ = !well || exit_.written_bytes >= kMuchWrittenBytes;
  for (OutputPipe& pipe : outputs_) pipe.finish();
  speech_.finish();
  drain(null_device);
  return asks_for_layer_;
}

void Exec::layer_checked(bool full, int null_device) {
  asks_for_layer_ = false;
  if (full) exit_.limits_hit |= static_cast<uint16_t>(LimitBit::kDisk);
  drain(null_device);
}

void Exec::drain(int null_device) {
  if (phase_ != Phase::kDraining) return;
  for (OutputPipe& pipe : outputs_)
    while (pipe.wants_read()) pipe.read_some(null_device);
  speech_.drain(outputs_);
  finish_if_drained();
}

void Exec::finish_if_drained() {
  for (const OutputPipe& pipe : outputs_)
    if (!pipe.finished()) return;
  if (asks_for_layer_ || !speech_.finished()) return;
  exit_.drain_us = micros_between(exited_at_, now());
  exit_.may_have_outputs = access(kOutputsDirectory, F_OK) == 0;
  exit_.stdout_bytes = stream(Stream::kStdout).produced();
  exit_.stderr_bytes = stream(Stream::kStderr).produced();
  exit_.speech_bytes = stream(Stream::kSpeech).produced();
  exit_.stdout_cut = stream(Stream::kStdout).cut();
  exit_.stderr_cut = stream(Stream::kStderr).cut();
  phase_ = Phase::kOver;
  if (exit_.stdout_cut + exit_.stderr_cut == 0) return;
  exit_.limits_hit |= static_cast<uint16_t>(LimitBit::kOutput);
  if (on_output_limit_ == OnOutputLimit::kCut) return;
  // Whether the excess was seen before or after the program's own end is chance; what is told is
  // not.
  if (exit_.cause == Cause::kProgram) exit_.cause = Cause::kOutput;
  program_.kill();
}

bool Exec::obey(const Frame& frame, Counters& counters) {
  if (frame.type == FrameType::kStart) {  // of the daemon's, which missed the answer
    started_told_ = false;
    return true;
  }
  if (frame.type == FrameType::kAcknowledge) return acknowledge(frame.payload);
  if (frame.type == FrameType::kSignal) return signal(frame.payload);
  if (frame.type == FrameType::kGrant) return grant(frame.payload, counters);
  if (frame.type == FrameType::kResize) return resize(frame.payload);
  if (frame.type == FrameType::kInput) {
    auto input = decode_input(frame.payload);
    return input.ok() && input_.take(*input);
  }
  if (frame.type == FrameType::kInputEnd) {
    auto offset = decode_input_end(frame.payload);
    return offset.ok() && input_.end_at(*offset);
  }
  return false;
}

bool Exec::acknowledge(std::string_view payload) {
  auto acknowledged = decode_acknowledge(payload);
  return acknowledged.ok() && stream(acknowledged->stream).acknowledge(acknowledged->offset);
}

bool Exec::signal(std::string_view payload) {
  auto signal_number = decode_signal(payload);
  if (signal_number) program_.signal(*signal_number);
  return signal_number.ok();
}

bool Exec::resize(std::string_view payload) {
  auto size = decode_resize(payload);
  int master = output(Stream::kStdout).fd();
  if (size && has_terminal_ && master >= 0) resize_terminal(master, *size);
  return size.ok();
}

std::optional<Remains> Exec::take_remains() {
  if (state() != State::kEnded || remains_taken_) return std::nullopt;
  remains_taken_ = true;
  return Remains(program_.leaf(), output(Stream::kStdout).release(),
                 output(Stream::kStderr).release(), program_.joining());
}

std::optional<std::string> Exec::next_report() {
  bool started = phase_ != Phase::kStarting && phase_ != Phase::kFailed;
  if (started && !started_told_) {
    started_told_ = true;
    return encode_started(number(), program_.first_pid());
  }
  // The end says that no more is taken.
  auto taken = started && !end_was_told_ ? input_.next_report() : std::nullopt;
  if (taken) return encode(number(), *taken);
  std::string_view said = started ? speech_.unsent(outputs_) : std::string_view();
  if (auto frame = next_output(Stream::kSpeech, said)) return frame;
  // In turns, so that a flood on one stream does not hold up the other. A terminal may show what
  // was typed before there is a program to read it.
  for (int i = 0; started && i < 2; ++i) {
    Stream stream = next_stream_;
    next_stream_ = stream == Stream::kStdout ? Stream::kStderr : Stream::kStdout;
    if (auto frame = next_output(stream, output(stream).stream().unsent())) return frame;
  }
  if (state() != State::kEnded || end_told_) return std::nullopt;
  end_told_ = end_was_told_ = true;
  return phase_ == Phase::kFailed ? encode(number(), failed_) : encode(number(), exit_);
}

std::optional<std::string> Exec::next_output(Stream which, std::string_view unsent) {
  OutputStream& bytes = stream(which);
  if (unsent.empty()) return std::nullopt;
  std::string frame = encode(number(), Output{which, bytes.sent(), unsent});
  bytes.mark_sent(unsent.size());
  return frame;
}

bool Exec::resume(const ExecOffsets& offsets) {
  // Whoever was to tell it to begin has gone with the old connection.
  if (waits_ && !(std::exchange(is_reborn_, false) && renew())) program_.kill();
  if (!stream(Stream::kStdout).resume_from(offsets.stdout_offset)) return false;
  if (!stream(Stream::kStderr).resume_from(offsets.stderr_offset)) return false;
  if (!stream(Stream::kSpeech).resume_from(offsets.speech_offset)) return false;
  started_told_ = false;
  end_told_ = false;
  input_.repeat_report();
  return true;
}

// In the words of the runtimes. It comes before anything that a program could be told.
bool Exec::renew() {
  return send(control_.get(), kRenew.data(), kRenew.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(kRenew.size());
}

ExecOffsets Exec::offsets() const {
  return {number(), output(Stream::kStdout).stream().produced(),
          output(Stream::kStderr).stream().produced(), speech_.stream().produced()};
}

}  // namespace atl::agent
