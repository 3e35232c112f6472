#include "agent/protocol.h"

#include <functional>

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

std::string_view payload_of(std::string_view frame) { return frame.substr(kHeaderBytes); }

Start some_start() {
  return {.arguments = {"python3", "-c", "print(1)", ""},
          .environment = {"PATH=/bin", "EMPTY="},
          .directory = "/home/user",
          .user = "root",
          .timeout_ms = 1500,
          .output_limit_bytes = 1ull << 33,
          .on_output_limit = OnOutputLimit::kKill,
          .cpu_time_ms = 2500,
          .open_files = 64,
          .input = std::string("a\0b", 3),
          .input_mode = InputMode::kOpen,
          .terminal = TerminalSize{80, 24}};
}

Exit some_exit() {
  return {.ending = Ending::kSignaled,
          .status = 9,
          .cause = Cause::kWallTime,
          .stdout_bytes = 1,
          .stderr_bytes = 2,
          .stdout_cut = 3,
          .stderr_cut = 4,
          .start_us = 5,
          .wall_us = 6,
          .drain_us = 7,
          .user_us = 8,
          .system_us = 9,
          .peak_memory_bytes = 10,
          .read_bytes = 11,
          .written_bytes = 12,
          .limits_hit = 0x21,
          .peak_scope = PeakScope::kSandbox};
}

const std::vector<ExecOffsets> kOffsets = {{1, 10, 20}, {7, 1ull << 40, 0}};

TEST(Protocol, HelloRoundTrip) {
  Hello hello = {kProtocolVersion, {}, kOffsets, "0.1.0"};
  hello.nonce.fill(0xab);
  std::string frame = encode(hello);
  auto decoded = decode_hello(payload_of(frame));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->version, hello.version);
  EXPECT_EQ(decoded->nonce, hello.nonce);
  EXPECT_EQ(decoded->release, "0.1.0");
  ASSERT_EQ(decoded->execs.size(), 2u);
  EXPECT_EQ(decoded->execs[1].exec, 7u);
  EXPECT_EQ(decoded->execs[1].stdout_offset, 1ull << 40);
  EXPECT_EQ(decoded->execs[0].stderr_offset, 20u);
}

TEST(Protocol, HelloOfTheFirstVersionHasNoRelease) {
  Hello hello = {1, {}, kOffsets, "left out"};
  std::string frame = encode(hello);
  auto decoded = decode_hello(payload_of(frame));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->version, 1);
  EXPECT_EQ(decoded->release, "");
  EXPECT_EQ(decoded->execs.size(), 2u);
}

TEST(Protocol, HelloOfAnUnknownVersionNamesBoth) {
  for (int version : {0, kProtocolVersion + 1, 65535}) {
    std::string frame = encode(Hello{static_cast<uint16_t>(version), {}, {}, "x"});
    // Whatever follows the version.
    std::string payload = std::string(payload_of(frame)).substr(0, 2) + "anything";
    auto decoded = decode_hello(payload);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().code(), Code::kUnsupported);
    EXPECT_EQ(decoded.error().message(), "the agent speaks protocol version " +
                                             std::to_string(version) + ", this atolld 1 to 2");
  }
}

TEST(Protocol, WelcomeRoundTrip) {
  std::string frame = encode(Welcome{kProtocolVersion, kOffsets});
  auto decoded = decode_welcome(payload_of(frame));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->version, kProtocolVersion);
  ASSERT_EQ(decoded->execs.size(), 2u);
  EXPECT_EQ(decoded->execs[0].stdout_offset, 10u);
}

TEST(Protocol, StartRoundTrip) {
  std::string frame = encode(3, some_start());
  auto decoded = decode_start(payload_of(frame));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->arguments, some_start().arguments);
  EXPECT_EQ(decoded->environment, some_start().environment);
  EXPECT_EQ(decoded->directory, "/home/user");
  EXPECT_EQ(decoded->user, "root");
  EXPECT_EQ(decoded->timeout_ms, 1500u);
  EXPECT_EQ(decoded->output_limit_bytes, 1ull << 33);
  EXPECT_EQ(decoded->on_output_limit, OnOutputLimit::kKill);
  EXPECT_EQ(decoded->cpu_time_ms, 2500u);
  EXPECT_EQ(decoded->open_files, 64u);
  EXPECT_EQ(decoded->input, some_start().input);
  EXPECT_EQ(decoded->input_mode, InputMode::kOpen);
  ASSERT_TRUE(decoded->terminal.has_value());
  EXPECT_EQ(decoded->terminal->columns, 80);
  EXPECT_EQ(decoded->terminal->rows, 24);
}

TEST(Protocol, ExitRoundTrip) {
  std::string frame = encode(3, some_exit());
  auto decoded = decode_exit(payload_of(frame));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->ending, Ending::kSignaled);
  EXPECT_EQ(decoded->status, 9);
  EXPECT_EQ(decoded->cause, Cause::kWallTime);
  uint64_t values[] = {decoded->stdout_bytes,      decoded->stderr_bytes, decoded->stdout_cut,
                       decoded->stderr_cut,        decoded->start_us,     decoded->wall_us,
                       decoded->drain_us,          decoded->user_us,      decoded->system_us,
                       decoded->peak_memory_bytes, decoded->read_bytes,   decoded->written_bytes};
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(values[i], i + 1);
  EXPECT_EQ(decoded->limits_hit, 0x21);
  EXPECT_EQ(decoded->peak_scope, PeakScope::kSandbox);
}

TEST(Protocol, SmallMessagesRoundTrip) {
  std::string frame = encode(3, Acknowledge{Stream::kStderr, 99});
  auto acknowledge = decode_acknowledge(payload_of(frame));
  ASSERT_TRUE(acknowledge.ok());
  EXPECT_EQ(acknowledge->stream, Stream::kStderr);
  EXPECT_EQ(acknowledge->offset, 99u);

  frame = encode(3, Output{Stream::kStderr, 5, "bytes"});
  auto output = decode_output(payload_of(frame));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->offset, 5u);
  EXPECT_EQ(output->data, "bytes");

  frame = encode(3, StartFailed{11, "clone"});
  auto failed = decode_start_failed(payload_of(frame));
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->system_errno, 11);
  EXPECT_EQ(failed->operation, "clone");

  frame = encode_started(3, 77);
  EXPECT_EQ(*decode_started(payload_of(frame)), 77u);
  frame = encode_signal(3, 15);
  EXPECT_EQ(*decode_signal(payload_of(frame)), 15);
  EXPECT_EQ(encode_exit_acknowledge(3).size(), kHeaderBytes);
}

struct Message {
  std::string frame;
  std::function<bool(std::string_view)> is_accepted;
  size_t optional_bytes = 0;  // at the end, which the first version did not have
};

std::vector<Message> every_message() {
  return {
      {encode(Hello{kProtocolVersion, {}, kOffsets}), [](auto p) { return decode_hello(p).ok(); }},
      {encode(Welcome{kProtocolVersion, kOffsets}), [](auto p) { return decode_welcome(p).ok(); }},
      {encode(3, some_start()), [](auto p) { return decode_start(p).ok(); }},
      {encode(3, Acknowledge{Stream::kStdout, 1}),
       [](auto p) { return decode_acknowledge(p).ok(); }},
      {encode(3, some_exit()), [](auto p) { return decode_exit(p).ok(); }, 9},
      {encode(3, StartFailed{11, "clone"}), [](auto p) { return decode_start_failed(p).ok(); }},
      {encode(3, Grant{5, 6}), [](auto p) { return decode_grant(p).ok(); }},
      {encode_started(3, 77), [](auto p) { return decode_started(p).ok(); }},
      {encode_signal(3, 9), [](auto p) { return decode_signal(p).ok(); }},
  };
}

TEST(Protocol, EveryTruncationAndEveryLeftOverIsRefused) {
  for (const Message& message : every_message()) {
    std::string payload(payload_of(message.frame));
    ASSERT_TRUE(message.is_accepted(payload));
    for (size_t length = 0; length < payload.size(); ++length) {
      bool is_whole = length == payload.size() - message.optional_bytes;
      EXPECT_EQ(message.is_accepted(payload.substr(0, length)), is_whole) << length;
    }
    EXPECT_FALSE(message.is_accepted(payload + '\0'));
  }
}

TEST(Protocol, TruncatedOutputHasNoData) {
  std::string frame = encode(3, Output{Stream::kStdout, 0, "x"});
  for (size_t length = 0; length < frame.size() - kHeaderBytes; ++length)
    EXPECT_FALSE(decode_output(payload_of(frame).substr(0, length)).ok());
}

TEST(Protocol, StartOutsideItsLimitsIsRefused) {
  auto accepted = [](const Start& start) {
    return decode_start(payload_of(encode(3, start))).ok();
  };
  Start start = some_start();
  start.arguments.clear();
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.arguments[0] = "";
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.directory = "relative";
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.environment.push_back(std::string("A=b\0c", 5));
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.arguments.push_back(std::string(kMaxTextBytes, 'x'));
  EXPECT_TRUE(accepted(start));
  start.arguments.back() += 'x';
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.arguments.resize(kMaxArguments + 1, "x");
  EXPECT_FALSE(accepted(start));
  start = some_start();
  start.directory = "/" + std::string(kMaxPathBytes, 'd');
  EXPECT_FALSE(accepted(start));
}

TEST(Protocol, ValuesOutsideTheirRangeAreRefused) {
  auto exit_accepted = [](Exit exit) { return decode_exit(payload_of(encode(3, exit))).ok(); };
  Exit exit = some_exit();
  exit.status = 0;
  EXPECT_FALSE(exit_accepted(exit)) << "no signal has number 0";
  exit.status = 65;
  EXPECT_FALSE(exit_accepted(exit));
  exit = some_exit();
  exit.cause = static_cast<Cause>(7);
  EXPECT_FALSE(exit_accepted(exit));
  exit = some_exit();
  exit.limits_hit = kAllLimitBits + 1;
  EXPECT_FALSE(exit_accepted(exit));
  EXPECT_FALSE(decode_signal(payload_of(encode_signal(3, 0))).ok());
  EXPECT_FALSE(decode_signal(payload_of(encode_signal(3, 65))).ok());
  EXPECT_FALSE(decode_started(payload_of(encode_started(3, 0))).ok());
  EXPECT_FALSE(decode_start_failed(payload_of(encode(3, StartFailed{1, "\xff"}))).ok());
  std::string big(kMaxOutputBytes + 1, 'x');
  EXPECT_FALSE(decode_output(payload_of(encode(3, Output{Stream::kStdout, 0, big}))).ok());
  Welcome crowd = {kProtocolVersion, {}};
  crowd.execs.resize(kMaxExecs + 1);
  EXPECT_FALSE(decode_welcome(payload_of(encode(crowd))).ok());
}

void feed(FrameReader& reader, std::string_view bytes) {
  bytes.copy(reader.prepare(bytes.size()), bytes.size());
  reader.commit(bytes.size());
}

void take_all(FrameReader& reader, std::vector<uint32_t>& execs) {
  while (true) {
    auto frame = reader.next();
    ASSERT_TRUE(frame.ok());
    if (!*frame) return;
    execs.push_back((*frame)->number);
  }
}

TEST(FrameReader, CutsFramesHoweverTheBytesArrive) {
  std::string bytes = encode(1, some_start()) + encode_signal(2, 9) + encode_exit_acknowledge(3);
  for (size_t piece = 1; piece < bytes.size(); ++piece) {
    FrameReader reader(FrameReader::Side::kAgent);
    std::vector<uint32_t> execs;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      feed(reader, std::string_view(bytes).substr(at, piece));
      take_all(reader, execs);
    }
    EXPECT_EQ(execs, (std::vector<uint32_t>{1, 2, 3})) << piece;
  }
}

TEST(FrameReader, RefusesTheOtherSidesFramesBadHeadersAndOversize) {
  auto refused = [](FrameReader::Side side, std::string_view bytes) {
    FrameReader reader(side);
    feed(reader, bytes);
    return !reader.next().ok();
  };
  EXPECT_TRUE(refused(FrameReader::Side::kDaemon, encode_signal(1, 9)));
  EXPECT_TRUE(refused(FrameReader::Side::kAgent, encode_started(1, 9)));
  std::string frame = encode_signal(1, 9);
  frame[5] = 1;
  EXPECT_TRUE(refused(FrameReader::Side::kAgent, frame));
  frame = encode_signal(1, 9);
  frame[4] = 99;
  EXPECT_TRUE(refused(FrameReader::Side::kAgent, frame));
  frame = encode_signal(1, 9);
  frame[3] = 1;
  EXPECT_TRUE(refused(FrameReader::Side::kAgent, frame)) << "16 MiB announced";
}

}  // namespace
}  // namespace atl::agent
