#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "agent/channel_protocol.h"
#include "agent/fixture_test.h"
#include "base/check.h"
#include "linux/unix_socket.h"

namespace atl::agent {
namespace {

constexpr uint32_t kNoExec = 1'000'000;

}  // namespace

Hello TestDaemon::connect() {
  Hello hello = connect_without_welcome();
  send_welcome();
  return hello;
}

Hello TestDaemon::connect_without_welcome() {
  socket_ = sandbox_.connect();
  reader_ = FrameReader(FrameReader::Side::kDaemon);
  hello_.reset();
  ATOLL_CHECK(run_until([this] { return hello_.has_value(); }));
  return *hello_;
}

void TestDaemon::send_welcome() {
  Welcome welcome = {kProtocolVersion, {}};
  for (const ExecOffsets& known : hello_->execs)
    if (auto held = records_.find(known.exec); held != records_.end())
      welcome.execs.push_back({known.exec, held->second.out.size(), held->second.err.size(),
                               held->second.speech.size()});
  send_raw(encode(welcome));
}

void TestDaemon::send_raw(std::string_view bytes, int descriptor) {
  int descriptors[] = {descriptor};
  if (descriptor >= 0) {
    ATOLL_CHECK(linux::send_message(socket_.get(), bytes, descriptors).ok());
    return;
  }
  while (!bytes.empty()) {
    ssize_t count = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return;  // dropped by the agent; the caller's expectations will notice
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

bool TestDaemon::is_dropped(std::chrono::milliseconds timeout) {
  pollfd poll_fd = {socket_.get(), POLLRDHUP, 0};
  return poll(&poll_fd, 1, static_cast<int>(timeout.count())) == 1;
}

void TestDaemon::start(uint32_t exec, const Start& start) {
  records_[exec];
  send_raw(encode(exec, start));
}

void TestDaemon::acknowledge_output(uint32_t exec) {
  const Record& held = records_[exec];
  send_raw(encode(exec, agent::Acknowledge{Stream::kStdout, held.out.size()}));
  send_raw(encode(exec, agent::Acknowledge{Stream::kStderr, held.err.size()}));
  if (!held.speech.empty())
    send_raw(encode(exec, agent::Acknowledge{Stream::kSpeech, held.speech.size()}));
}

void TestDaemon::acknowledge_exit(uint32_t exec) { send_raw(encode_exit_acknowledge(exec)); }

bool TestDaemon::run_until(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
  auto end = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    receive(20);
  }
  return true;
}

bool TestDaemon::receive(int timeout_ms) {
  pollfd poll_fd = {socket_.get(), POLLIN, 0};
  if (poll(&poll_fd, 1, timeout_ms) <= 0) return false;
  char* room = reader_.prepare(64 * 1024);
  ssize_t count = recv(socket_.get(), room, 64 * 1024, MSG_DONTWAIT);
  if (count <= 0) return false;
  reader_.commit(static_cast<size_t>(count));
  while (true) {
    auto frame = reader_.next();
    ATOLL_CHECK(frame.ok());
    if (!*frame) return true;
    take(**frame);
  }
}

void TestDaemon::take(const Frame& frame) {
  if (frame.type == FrameType::kHello) {
    auto hello = decode_hello(frame.payload);
    ATOLL_CHECK(hello.ok());
    hello_ = *hello;
    return;
  }
  if (frame.type >= FrameType::kChannelData && frame.type <= FrameType::kChannelClose) {
    if (on_channel) on_channel(frame);
    return;
  }
  Record& held = records_[frame.number];
  if (held.exit) {
    bool repeated = frame.type == FrameType::kExit || frame.type == FrameType::kStarted;
    if (!repeated) contradiction_ = "frame after the exit";
  }
  if (frame.type == FrameType::kStarted) {
    held.pid = *decode_started(frame.payload);
    ++held.started_frames;
  } else if (frame.type == FrameType::kStartFailed) {
    held.failed = *decode_start_failed(frame.payload);
  } else if (frame.type == FrameType::kInputTaken) {
    held.input = *decode_input_taken(frame.payload);
    ++held.input_frames;
  } else if (frame.type == FrameType::kOutput) {
    take_output(frame.number, *decode_output(frame.payload));
  } else if (frame.type == FrameType::kExit) {
    held.exit = *decode_exit(frame.payload);
    ++held.exit_frames;
  }
}

void TestDaemon::take_output(uint32_t exec, const Output& output) {
  Record& held = records_[exec];
  if (!held.pid) contradiction_ = "output before started";
  std::string& log = output.stream == Stream::kStdout   ? held.out
                     : output.stream == Stream::kStderr ? held.err
                                                        : held.speech;
  if (output.offset != log.size()) contradiction_ = "output at the wrong offset";
  log.append(output.data);
  if (record(exec).acknowledge == Record::Acknowledge::kNever) return;
  send_raw(encode(exec, agent::Acknowledge{output.stream, log.size()}));
}

const Record& TestDaemon::finish(uint32_t exec) {
  run_until([&] { return records_[exec].ended(); });
  if (records_[exec].ended()) acknowledge_exit(exec);
  return records_[exec];
}

void linger(TestDaemon& daemon, std::chrono::milliseconds time) {
  (void)daemon.run_until([] { return false; }, time);
}

bool catches_up(TestDaemon& daemon) {
  static uint32_t channel = 1'000'000;  // no test has as many
  bool is_answered = false;
  auto others = std::exchange(daemon.on_channel, nullptr);
  daemon.on_channel = [&](const Frame& frame) {
    if (frame.number == channel) {
      is_answered = frame.type == FrameType::kChannelClose;
    } else if (others) {
      others(frame);
    }
  };
  // Twice: what the agent reads in one turn of its loop may be told after the first answer.
  bool caught_up = true;
  for (int i = 0; i < 2 && caught_up; ++i) {
    is_answered = false;
    daemon.send_raw(encode(++channel, OpenControl{.exec = kNoExec, .begins = {}}));
    caught_up = daemon.run_until([&] { return is_answered; });
  }
  daemon.on_channel = std::move(others);
  return caught_up;
}

}  // namespace atl::agent
