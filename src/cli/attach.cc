#include "cli/attach.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <thread>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/detach_keys.h"
#include "cli/raw_terminal.h"
#include "cli/readable.h"
#include "cli/terminal_filter.h"

namespace atl::cli {
namespace {

namespace json = boost::json;
using Kind = http::WebSocket::Kind;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{30'000};
constexpr std::chrono::milliseconds kRetryPause{200};
// Above it what is typed has to wait: the program does not read.
constexpr size_t kMaxQueuedBytes = 64 * 1024;
constexpr unsigned kTakenOver = 4001;

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGWINCH, SIGTERM, SIGHUP, SIGINT}) sigaddset(&set, number);
  return set;
}

// The signals that a terminal's program gets, as something to poll.
class TerminalSignals {
 public:
  static Result<TerminalSignals> open() {
    TerminalSignals signals;
    sigset_t set = waited_signals();
    if (pthread_sigmask(SIG_BLOCK, &set, &signals.before_) != 0) return Error::system("sigmask");
    signals.fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.fd_) return Error::system("signalfd");
    return signals;
  }
  TerminalSignals(TerminalSignals&&) = default;
  ~TerminalSignals() {
    if (fd_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }
  // 0: none.
  int next() {
    signalfd_siginfo info;
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
  }

 private:
  TerminalSignals() = default;
  Fd fd_;
  sigset_t before_{};
};

class Attachment {
 public:
  Attachment(Api& api, const ExecName& name, const AttachOptions& options)
      : api_(api),
        name_(name),
        options_(options),
        reads_input_(options.input == TerminalInput::kPassed) {}

  Result<int> run() {
    ATOLL_TRY(TerminalSignals signals, TerminalSignals::open());
    ATOLL_TRY_VOID(open(options_.since, false));
    // From here on the terminal is not ours to write lines to.
    std::optional<RawTerminal> raw;
    if (reads_input_ && isatty(STDIN_FILENO) == 1) {
      ATOLL_TRY(RawTerminal entered, RawTerminal::enter(STDIN_FILENO));
      raw.emplace(std::move(entered));
    }
    is_terminal_ = raw.has_value();
    send_size();
    while (!exit_code_) ATOLL_TRY_VOID(step(signals));
    raw.reset();
    fputs(last_words_.c_str(), stderr);
    return *exit_code_;
  }

 private:
  Result<void> open(const std::string& since, bool takes_over) {
    ATOLL_TRY(std::string target, exec_target(name_.sandbox, name_.exec));
    target += "/attach?since=" + (since.empty() ? "0" : since);
    if (takes_over) target += "&takeover=true";
    ATOLL_TRY(socket_, api_.open_web_socket(target));
    return {};
  }

  // The server was restarted or the network is bad: the program goes on, so do we.
  Result<void> reopen(Error why) {
    auto given_up = steady_clock::now() + kPatience;
    for (;;) {
      auto opened = open(std::to_string(offset_), true);
      if (opened) break;
      bool may_come = opened.error().code() == Code::kUnavailable;
      if (!may_come || steady_clock::now() > given_up) return why;
      std::this_thread::sleep_for(kRetryPause);
    }
    send_size();
    return {};
  }

  Result<void> step(TerminalSignals& signals) {
    bool may_read = reads_input_ && socket_->queued_bytes() < kMaxQueuedBytes;
    pollfd states[] = {{.fd = socket_->fd(), .events = socket_->wanted_events(), .revents = 0},
                       {.fd = signals.fd(), .events = POLLIN, .revents = 0},
                       {.fd = may_read ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    if (poll(states, 3, -1) < 0 && errno != EINTR) return Error::system("poll");
    for (int number = signals.next(); number != 0; number = signals.next()) take_signal(number);
    if (states[2].revents != 0) ATOLL_TRY_VOID(take_input());
    auto pumped = socket_->pump();
    ATOLL_TRY_VOID(take_messages());
    if (exit_code_) return {};
    if (socket_->close_code() == kTakenOver) {
      leave(0, "atoll: another client took the terminal over\n");
      return {};
    }
    if (pumped && !socket_->close_code()) return {};
    return reopen(pumped ? Error(Code::kUnavailable, "the server closed the terminal")
                         : std::move(pumped).error());
  }

  void take_signal(int number) {
    if (number == SIGWINCH) {
      send_size();
      return;
    }
    // Whoever ends us ends what we show; Ctrl-C of a raw terminal is a byte, not a signal.
    control({{"signal", number}});
    (void)socket_->pump();
    leave(128 + number, "");
  }

  Result<void> take_input() {
    char bytes[4096];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (count <= 0) {
      reads_input_ = false;
      control({{"eof", true}});
      return {};
    }
    std::string_view typed(bytes, static_cast<size_t>(count));
    std::string passed = is_terminal_ ? keys_.take(typed) : std::string(typed);
    if (!passed.empty()) socket_->queue(Kind::kBinary, passed);
    if (keys_.is_asked())
      leave(0, "\natoll: left " + name_.exec + " running; come back with: atoll shell --attach " +
                   name_.exec + " " + name_.sandbox + "\n");
    return {};
  }

  Result<void> take_messages() {
    while (auto message = socket_->next()) {
      if (message->kind == Kind::kBinary) {
        offset_ += message->data.size();
        ATOLL_TRY_VOID(show(message->data));
        continue;
      }
      json::error_code error;
      json::value value = json::parse(message->data, error);
      if (error || !value.is_object())
        return Error(Code::kCorrupt, "the server's message is no JSON");
      take_control(value.as_object());
    }
    return {};
  }

  void take_control(const json::object& message) {
    if (message.contains("offset")) offset_ = number_field(message, "offset");
    const json::value* exit = message.if_contains("exit");
    if (exit == nullptr || !exit->is_object()) return;
    leave(exit_code_of_exec(exit->get_object()), explain_end(exit->get_object()));
  }

  Result<void> show(const std::string& bytes) {
    bool filters = options_.mode == OutputMode::kSafe && isatty(STDOUT_FILENO) == 1;
    return write_all(STDOUT_FILENO, filters ? filter_.pass(bytes) : bytes);
  }

  void send_size() {
    if (isatty(STDOUT_FILENO) != 1) return;
    TerminalSize size = terminal_size(STDOUT_FILENO);
    control({{"resize", {{"cols", size.columns}, {"rows", size.rows}}}});
  }

  void control(json::object message) { socket_->queue(Kind::kText, json::serialize(message)); }

  void leave(int exit_code, std::string last_words) {
    exit_code_ = exit_code;
    last_words_ = std::move(last_words);
  }

  Api& api_;
  const ExecName& name_;
  const AttachOptions& options_;
  std::unique_ptr<http::WebSocketClient> socket_;
  bool reads_input_;
  bool is_terminal_ = false;
  DetachKeys keys_;
  TerminalFilter filter_;
  uint64_t offset_ = 0;
  std::optional<int> exit_code_;
  std::string last_words_;
};

}  // namespace

Result<ExecName> start_on_terminal(Api& api, const std::string& sandbox, json::object request) {
  TerminalSize size = terminal_size(STDOUT_FILENO);
  request["pty"] = {{"cols", size.columns}, {"rows", size.rows}};
  json::object& env =
      request["env"].is_object() ? request["env"].get_object() : request["env"].emplace_object();
  const char* term = getenv("TERM");
  if (!env.contains("TERM")) env["TERM"] = term != nullptr && *term != '\0' ? term : "xterm";
  ATOLL_TRY(json::object started, api.start_exec(sandbox, std::move(request)));
  return ExecName{sandbox, text_field(started, "id")};
}

Result<int> attach(Api& api, const ExecName& name, const AttachOptions& options) {
  return Attachment(api, name, options).run();
}

}  // namespace atl::cli
