#include "agent/channel_fixture_test.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/imprint_protocol.h"
#include "base/check.h"
#include "base/file.h"

namespace atl::agent {

std::vector<std::string> FileAnswer::paths() const {
  std::vector<std::string> all;
  for (const FileEntry& entry : entries) all.push_back(entry.path);
  for (const FileMatch& match : matches) all.push_back(match.entry.path);
  return all;
}

FileAnswer read_answer(const TestChannel& channel) {
  FileAnswer answer;
  answer.close = channel.close;
  RecordReader reader;
  reader.add(channel.bytes);
  while (true) {
    auto next = reader.next();
    ATOLL_CHECK(next.ok());
    if (!*next) return answer;
    auto [type, payload] = **next;
    ATOLL_CHECK(!answer.done && !answer.failure);
    if (type == RecordType::kEntry) answer.entries.push_back(decode_entry(payload).value());
    if (type == RecordType::kMatch) answer.matches.push_back(decode_match(payload).value());
    if (type == RecordType::kChange) answer.changes.push_back(decode_change(payload).value());
    if (type == RecordType::kPort) answer.ports.push_back(decode_port(payload).value());
    if (type == RecordType::kBytes) answer.bytes.append(payload);
    if (type == RecordType::kReady) answer.ready = true;
    if (type == RecordType::kDone) answer.done = decode_done(payload).value();
    if (type == RecordType::kFailed) answer.failure = decode_failure(payload).value();
  }
}

void TestChannels::grant(uint32_t number, uint64_t total_bytes) {
  channels_[number].may_receive = total_bytes;
  daemon_.send_raw(encode_channel_credit(number, total_bytes));
}

TestChannels::TestChannels(TestDaemon& daemon) : daemon_(daemon) {
  daemon.on_channel = [this](const Frame& frame) { take(frame); };
}

uint32_t TestChannels::open(const FileRequest& request) {
  uint32_t number = next_++;
  channels_[number];
  daemon_.send_raw(encode(number, request));
  return number;
}

uint32_t TestChannels::open_control(const OpenControl& open) {
  uint32_t channel = next_++;
  channels_[channel] = TestChannel();
  daemon_.send_raw(encode(channel, open));
  return channel;
}

uint32_t TestChannels::open_imprint(uint32_t exec) {
  uint32_t channel = next_++;
  channels_[channel] = TestChannel();
  daemon_.send_raw(encode_open_imprint(channel, exec));
  return channel;
}

uint32_t TestChannels::open_port(uint16_t port) {
  uint32_t number = next_++;
  channels_[number];
  daemon_.send_raw(encode_open_port(number, port));
  return number;
}

void TestChannels::send(uint32_t number, std::string_view bytes) {
  TestChannel& channel = channels_[number];
  while (!bytes.empty()) {
    bool can_send =
        daemon_.run_until([&] { return channel.sent < channel.may_send || channel.close; });
    if (!can_send || channel.close) return;
    size_t room = std::min<uint64_t>(channel.may_send - channel.sent, kMaxChannelDataBytes);
    std::string_view piece = bytes.substr(0, room);
    daemon_.send_raw(encode_channel_data(number, piece));
    channel.sent += piece.size();
    bytes.remove_prefix(piece.size());
  }
}

void TestChannels::end(uint32_t number) { daemon_.send_raw(encode_channel_end(number)); }

void TestChannels::give_up(uint32_t number) { daemon_.send_raw(encode(number, ChannelClose{})); }

bool TestChannels::wait_closed(uint32_t number) {
  return daemon_.run_until([&] { return channels_[number].close.has_value(); });
}

FileAnswer TestChannels::run(const FileRequest& request, std::string_view upload) {
  uint32_t number = open(request);
  send(number, upload);
  EXPECT_TRUE(wait_closed(number));
  FileAnswer answer = read_answer(channels_[number]);
  channels_.erase(number);
  return answer;
}

FileAnswer TestChannels::write(const std::string& path, std::string_view bytes,
                               FileRequest request) {
  request.operation = FileOperation::kWrite;
  request.path = path;
  std::string upload;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(bytes.size(), 100'000)))
    upload += encode_record(RecordType::kBytes, bytes.substr(0, 100'000));
  return run(request, upload + encode_done());
}

void TestChannels::take(const Frame& frame) {
  auto found = channels_.find(frame.number);
  ATOLL_CHECK(found != channels_.end());
  TestChannel& channel = found->second;
  ATOLL_CHECK(!channel.close);
  if (frame.type == FrameType::kChannelData) {
    ATOLL_CHECK(!channel.ended);
    channel.bytes.append(decode_channel_data(frame.payload).value());
    ATOLL_CHECK(channel.bytes.size() <= channel.may_receive);
    if (channel.credit == TestChannel::Credit::kAtOnce) {
      channel.may_receive =
          std::max(channel.may_receive, channel.bytes.size() + kChannelWindowBytes);
      daemon_.send_raw(encode_channel_credit(frame.number, channel.may_receive));
    }
  }
  if (frame.type == FrameType::kChannelCredit)
    channel.may_send = decode_channel_credit(frame.payload).value();
  if (frame.type == FrameType::kChannelEnd) channel.ended = true;
  if (frame.type == FrameType::kChannelClose)
    channel.close = decode_channel_close(frame.payload).value();
}

void FileTest::SetUp() {
  if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
  daemon_.connect();
  if (has_own_root_) {
    // Nobody outside can make files on a file system of the sandbox's user namespace.
    prefix_ = "/proc/" + std::to_string(sandbox_.agent_pid()) + "/root";
    directory_ = "/tmp/files";
    ATOLL_CHECK(run("mkdir -m 777 " + directory_).exit->status == 0);
    return;
  }
  char path[] = "/tmp/atoll-files-test-XXXXXX";
  directory_ = mkdtemp(path);
  chmod(path, 0777);
}

void FileTest::TearDown() {
  if (directory_.empty()) return;
  EXPECT_TRUE(leaves_are_gone());
  EXPECT_EQ(daemon_.contradiction(), "");
  if (has_own_root_) return;
  std::string command = "rm -rf " + directory_;
  EXPECT_EQ(system(command.c_str()), 0);
}

bool FileTest::leaves_are_gone() {
  return daemon_.run_until([&] { return sandbox_.leaves().empty(); });
}

void FileTest::put(const std::string& name, std::string_view bytes, unsigned mode) {
  if (has_own_root_) {
    FileRequest request;
    request.mode = mode;
    EXPECT_EQ(channels_.write(at(name), bytes, request).error(), 0);
    return;
  }
  std::ofstream(at(name)) << bytes;
  ATOLL_CHECK(chmod(at(name).c_str(), mode) == 0);
}

std::string FileTest::get(const std::string& name) const {
  auto bytes = read_file(outside(name), 1 << 30);
  return bytes.ok() ? *bytes : "(no " + name + ")";
}

std::vector<std::string> FileTest::tree() const {
  std::vector<std::string> names;
  std::string root = prefix_ + directory_;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    names.push_back(entry.path().string().substr(root.size() + 1));
  std::sort(names.begin(), names.end());
  return names;
}

FileAnswer FileTest::ask(FileOperation operation, const std::string& name, uint32_t flags) {
  return channels_.run(file_request(operation, name.empty() ? directory_ : at(name), flags));
}

Record FileTest::run(const std::string& script, const std::string& user) {
  Start start = shell(script);
  start.user = user;
  uint32_t exec = next_exec_++;
  daemon_.start(exec, start);
  EXPECT_TRUE(daemon_.run_until([&] { return daemon_.record(exec).ended(); }, 2 * test_timeout()));
  return daemon_.finish(exec);
}

FileRequest file_request(FileOperation operation, std::string path, uint32_t flags) {
  FileRequest request;
  request.operation = operation;
  request.path = std::move(path);
  request.flags = flags;
  return request;
}

}  // namespace atl::agent
