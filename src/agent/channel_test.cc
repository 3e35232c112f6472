// Channels as such: credit, turns, ports, and what becomes of them when the daemon goes.
#include "agent/channel_fixture_test.h"

namespace atl::agent {
namespace {

class Channels : public FileTest {};
ATOLL_FILE_TESTS(Channels);

FileRequest read_all_of(const std::string& path) {
  FileRequest request = file_request(FileOperation::kRead, path);
  request.length = UINT64_MAX;
  return request;
}

TEST_P(Channels, NoMoreIsSentThanTheCreditAllows) {
  put("big", std::string(2 << 20, 'x'));
  uint32_t slow = channels_.open(read_all_of(at("big")));
  channels_.at(slow).credit = TestChannel::Credit::kNone;
  ASSERT_TRUE(
      daemon_.run_until([&] { return channels_.at(slow).bytes.size() == kChannelWindowBytes; }));
  // One that is not taken holds up no other, and no exec.
  EXPECT_EQ(channels_.run(read_all_of(at("big"))).bytes.size(), size_t{2 << 20});
  EXPECT_EQ(run("echo here").out, "here\n");
  EXPECT_EQ(channels_.at(slow).bytes.size(), kChannelWindowBytes);
  channels_.at(slow).credit = TestChannel::Credit::kAtOnce;
  channels_.grant(slow, 4 << 20);
  ASSERT_TRUE(channels_.wait_closed(slow));
  EXPECT_EQ(read_answer(channels_.at(slow)).bytes.size(), size_t{2 << 20});
}

TEST_P(Channels, OneThatIsGivenUpLeavesNoProcess) {
  put("big", std::string(2 << 20, 'x'));
  uint32_t channel = channels_.open(read_all_of(at("big")));
  channels_.at(channel).credit = TestChannel::Credit::kNone;
  ASSERT_TRUE(daemon_.run_until([&] { return !channels_.at(channel).bytes.empty(); }));
  channels_.give_up(channel);
  ASSERT_TRUE(channels_.wait_closed(channel));
  EXPECT_TRUE(leaves_are_gone());
  EXPECT_EQ(run("ls -d /proc/[0-9]* | wc -l").exit->status, 0);
}

TEST_P(Channels, TheyGoWithTheConnection) {
  uint32_t channel = channels_.open(file_request(FileOperation::kWatch, directory_));
  ASSERT_TRUE(daemon_.run_until([&] { return read_answer(channels_.at(channel)).ready; }));
  EXPECT_EQ(sandbox_.leaves().size(), 1u);
  daemon_.connect();
  EXPECT_TRUE(leaves_are_gone());
  // The number is free again.
  daemon_.send_raw(encode(channel, file_request(FileOperation::kStat, directory_)));
  channels_.at(channel) = TestChannel();
  ASSERT_TRUE(channels_.wait_closed(channel));
  EXPECT_EQ(read_answer(channels_.at(channel)).error(), 0);
}

TEST_P(Channels, ThereAreOnlySoMany) {
  std::vector<uint32_t> open;
  for (size_t i = 0; i < kMaxChannels; ++i)
    open.push_back(channels_.open(file_request(FileOperation::kWatch, directory_)));
  uint32_t refused = channels_.open(file_request(FileOperation::kStat, directory_));
  ASSERT_TRUE(channels_.wait_closed(refused));
  EXPECT_EQ(channels_.at(refused).close->system_errno, EAGAIN);
  for (uint32_t channel : open) channels_.give_up(channel);
  for (uint32_t channel : open) EXPECT_TRUE(channels_.wait_closed(channel));
  EXPECT_EQ(ask(FileOperation::kStat, "").error(), 0);
}

TEST_P(Channels, BrokenProtocolDropsTheConnection) {
  auto is_dropped_after = [&](const std::string& bytes) {
    daemon_.connect();
    daemon_.send_raw(bytes);
    return daemon_.is_dropped();
  };
  FileRequest write = file_request(FileOperation::kWrite, at("a"));
  EXPECT_TRUE(is_dropped_after(encode(900, write) + encode(900, write)));
  EXPECT_TRUE(is_dropped_after(FrameWriter(FrameType::kOpenFiles, 901).take()));
  EXPECT_TRUE(is_dropped_after(encode(902, write) + encode_channel_end(902) +
                               encode_channel_data(902, "x")));
  // Whoever is not read by us reads nothing either, so the bytes stay.
  put("big", std::string(2 << 20, 'x'));
  std::string beyond = encode(903, read_all_of(at("big")));
  for (uint64_t sent = 0; sent <= 4 * kChannelWindowBytes; sent += kMaxChannelDataBytes)
    beyond += encode_channel_data(903, std::string(kMaxChannelDataBytes, '\xff'));
  EXPECT_TRUE(is_dropped_after(beyond));
  // Frames of a channel that is gone are not wrong.
  daemon_.connect();
  daemon_.send_raw(encode_channel_data(904, "x") + encode(904, ChannelClose{}));
  EXPECT_TRUE(catches_up(daemon_));
}

const char* kServer =
    "exec python3 -c \"\n"
    "import socket, sys\n"
    "family = socket.AF_INET6 if sys.argv[1] == '6' else socket.AF_INET\n"
    "s = socket.socket(family); s.bind(('::1' if sys.argv[1] == '6' else '127.0.0.1', 0))\n"
    "s.listen(5); print(s.getsockname()[1], flush=True)\n"
    "while True:\n"
    "  c, _ = s.accept(); all = b''\n"
    "  while True:\n"
    "    b = c.recv(65536)\n"
    "    if not b: break\n"
    "    all += b\n"
    "  c.sendall(all[::-1]); c.close()\" ";

class Ports : public FileTest {
 protected:
  uint16_t start_server(const std::string& family) {
    daemon_.start(500, shell(kServer + family));
    daemon_.run_until([&] { return daemon_.record(500).out.ends_with("\n"); });
    return static_cast<uint16_t>(std::stoi("0" + daemon_.record(500).out));
  }
  void stop_server() {
    daemon_.send_raw(encode_signal(500, 9));
    daemon_.finish(500);
  }
};
ATOLL_FILE_TESTS(Ports);

TEST_P(Ports, BytesPassBothWaysWithHalfClose) {
  for (const char* family : {"4", "6"}) {
    uint16_t port = start_server(family);
    ASSERT_NE(port, 0) << daemon_.record(500).err;
    FileAnswer listening = channels_.run(file_request(FileOperation::kPorts, "/"));
    EXPECT_EQ(listening.error(), 0);
    auto is_it = [&](const ListeningPort& found) { return found.port == port; };
    auto found = std::find_if(listening.ports.begin(), listening.ports.end(), is_it);
    ASSERT_NE(found, listening.ports.end());
    EXPECT_EQ(found->address, *family == '6' ? "::1" : "127.0.0.1");
    uint32_t channel = channels_.open_port(port);
    std::string bytes(1'000'000, 'x');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 253);
    channels_.send(channel, bytes);
    EXPECT_FALSE(channels_.at(channel).close);
    channels_.end(channel);
    ASSERT_TRUE(channels_.wait_closed(channel));
    EXPECT_EQ(channels_.at(channel).close->system_errno, 0);
    EXPECT_TRUE(channels_.at(channel).ended);
    EXPECT_TRUE(channels_.at(channel).bytes == std::string(bytes.rbegin(), bytes.rend()));
    stop_server();
    daemon_.forget(500);
  }
}

TEST_P(Ports, NobodyListening) {
  uint32_t channel = channels_.open_port(1);
  ASSERT_TRUE(channels_.wait_closed(channel));
  EXPECT_EQ(channels_.at(channel).close->system_errno, ECONNREFUSED);
  EXPECT_EQ(channels_.at(channel).close->operation, "connect");
}

TEST_P(Ports, AConnectionIsGivenUp) {
  uint32_t channel = channels_.open_port(start_server("4"));
  channels_.send(channel, "half");
  channels_.give_up(channel);
  ASSERT_TRUE(channels_.wait_closed(channel));
  uint32_t next = channels_.open_port(static_cast<uint16_t>(std::stoi(daemon_.record(500).out)));
  channels_.send(next, "ab");
  channels_.end(next);
  ASSERT_TRUE(channels_.wait_closed(next));
  EXPECT_EQ(channels_.at(next).bytes, "ba");
  stop_server();
}

}  // namespace
}  // namespace atl::agent
