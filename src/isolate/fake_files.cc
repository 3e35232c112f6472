#include "isolate/fake_files.h"

#include <algorithm>

#include "agent/still_files.h"
#include "base/check.h"

namespace atl::isolate {

using agent::EntryType;
using agent::FileEntry;
using agent::FileOperation;
using agent::FileRequest;
using agent::RecordType;

namespace {

std::string fail(int system_errno, std::string_view operation) {
  agent::FileFailure failure{system_errno, std::string(operation), ""};
  return agent::encode_record(failure);
}

std::string in_records(std::string_view bytes) {
  std::string records;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(bytes.size(), 65536)))
    records += agent::encode_record(RecordType::kBytes, bytes.substr(0, 65536));
  return records;
}

bool is_flag_set(const FileRequest& request, agent::FileFlag flag) {
  return (request.flags & agent::bit(flag)) != 0;
}

bool takes_bytes(const FileRequest& request) {
  return request.operation == FileOperation::kWrite || request.operation == FileOperation::kUnpack;
}

// In place of the path of a request: the channel is that of agent/still_files.h.
constexpr std::string_view kStillPath = "still";
// A file of this name is written while the others stand still.
constexpr const char* kRestless = "/restless";
// With a file of this name the kernel refuses to write its files down.
constexpr const char* kStubborn = "/stubborn";

std::string beneath(const std::string& path) { return path == "/" ? path : path + "/"; }

}  // namespace

std::string FakeFiles::answer(const agent::Frame& frame) {
  if (frame.type == agent::FrameType::kOpenFiles) return open(frame);
  if (frame.type == agent::FrameType::kOpenPort)
    return agent::encode(frame.number, agent::ChannelClose{ECONNREFUSED, "connect"});
  if (frame.type == agent::FrameType::kOpenControl) {
    if (agent::decode_open_control(frame.payload)->exec != agent::kStillFiles)
      return agent::encode(frame.number, agent::ChannelClose{EOPNOTSUPP, "open control"});
    Channel& still = channels_[frame.number];
    still.request.path = kStillPath;
    still.out = contents_.contains(kStubborn) ? agent::kCannot : agent::kIsStill;
    return flush(frame.number);
  }
  auto found = channels_.find(frame.number);
  if (found == channels_.end()) return "";
  Channel& channel = found->second;
  if (frame.type == agent::FrameType::kChannelClose) {
    channels_.erase(found);
    return agent::encode(frame.number, agent::ChannelClose{});
  }
  if (frame.type == agent::FrameType::kChannelCredit) {
    channel.credit = *agent::decode_channel_credit(frame.payload);
  } else if (frame.type == agent::FrameType::kChannelData) {
    channel.received += frame.payload.size();
    channel.reader.add(frame.payload);
    if (channel.request.path != kStillPath) take(channel);
    if (channel.request.path == kStillPath) {
      if (!contents_.contains(kRestless)) channel.out = agent::kGoesOn;
      channel.done = true;
    }
    std::string credit =
        agent::encode_channel_credit(frame.number, channel.received + agent::kChannelWindowBytes);
    return credit + flush(frame.number);
  }
  return flush(frame.number);
}

std::string FakeFiles::open(const agent::Frame& frame) {
  auto request = agent::decode_file_request(frame.payload);
  ATOLL_CHECK(request.ok());
  Channel& channel = channels_[frame.number];
  channel.request = *request;
  if (request->path.ends_with(".hang")) return "";
  if (request->path.ends_with(".denied")) {
    channel.out = fail(EACCES, "open");
    channel.done = true;
  } else if (!takes_bytes(*request)) {
    channel.out = carry_out(*request);
    channel.done = true;
  }
  return flush(frame.number);
}

std::string FakeFiles::carry_out(const FileRequest& request) {
  if (request.operation == FileOperation::kMakeDirectory) return make(request);
  if (request.operation == FileOperation::kPorts)
    return agent::encode_record(agent::ListeningPort{8000, "0.0.0.0"}) + agent::encode_done();
  if (request.operation == FileOperation::kList) return list(request);
  if (request.operation == FileOperation::kPack) return pack(request);
  auto found = entries_.find(request.path);
  if (found == entries_.end()) return fail(ENOENT, "open");
  if (request.operation == FileOperation::kRead) return read(request);
  if (request.operation == FileOperation::kRemove) return remove(request);
  if (request.operation == FileOperation::kMove) return move(request);
  if (is_flag_set(request, agent::FileFlag::kSetMode)) found->second.mode = request.mode;
  return agent::encode_record(found->second) + agent::encode_done();
}

std::string FakeFiles::make(const FileRequest& request) {
  bool existed = entries_.contains(request.path);
  FileEntry& entry = entries_[request.path];
  entry.path = request.path;
  entry.type = EntryType::kDirectory;
  entry.mode = request.mode == 0 ? 0755 : request.mode;
  uint8_t flags = existed ? agent::bit(agent::DoneFlag::kExisted) : uint8_t{0};
  return agent::encode_record(entry) + agent::encode_done(flags);
}

std::string FakeFiles::read(const FileRequest& request) {
  const FileEntry& entry = entries_[request.path];
  if (entry.type == EntryType::kDirectory) return fail(EISDIR, "open");
  if (entry.type != EntryType::kFile) return fail(ENXIO, "open");
  std::string_view bytes = contents_[request.path];
  bytes = bytes.substr(std::min<uint64_t>(request.offset, bytes.size()), request.length);
  std::string out = agent::encode_record(entry);
  if (request.path.ends_with(".lies")) return out + agent::encode_done();
  if (request.path.ends_with(".cut"))
    return out + in_records(bytes.substr(0, bytes.size() / 2)) + fail(EIO, "read");
  return out + in_records(bytes) + agent::encode_done();
}

std::string FakeFiles::list(const FileRequest& request) {
  std::string out;
  std::string prefix = beneath(request.path);
  uint32_t count = 0;
  for (const auto& [path, entry] : entries_) {
    if (!path.starts_with(prefix) || path <= request.cursor) continue;
    bool deeper = path.find('/', prefix.size()) != path.npos;
    if (deeper && request.depth == 1) continue;
    if (count++ == request.limit) break;
    FileEntry told = entry;
    if (path.ends_with(".outside")) told.path = "/etc/outside";
    out += agent::encode_record(told);
  }
  return out + agent::encode_done();
}

std::string FakeFiles::pack(const FileRequest& request) {
  std::string out;
  std::string prefix = beneath(request.path);
  for (const auto& [path, entry] : entries_) {
    if (!path.starts_with(prefix)) continue;
    FileEntry relative = entry;
    relative.path = path.substr(prefix.size());
    if (path.ends_with(".outside")) relative.path = "../outside";
    out += agent::encode_record(relative);
    if (entry.type == EntryType::kFile) out += in_records(contents_[path]);
  }
  return out + agent::encode_done();
}

std::string FakeFiles::remove(const FileRequest& request) {
  std::string prefix = beneath(request.path);
  auto child = entries_.lower_bound(prefix);
  bool has_children = child != entries_.end() && child->first.starts_with(prefix);
  if (has_children && !is_flag_set(request, agent::FileFlag::kRecursive))
    return fail(ENOTEMPTY, "rmdir");
  std::erase_if(entries_, [&](const auto& it) {
    return it.first == request.path || it.first.starts_with(prefix);
  });
  return agent::encode_done();
}

std::string FakeFiles::move(const FileRequest& request) {
  bool existed = entries_.contains(request.target);
  if (existed && !is_flag_set(request, agent::FileFlag::kReplace)) return fail(EEXIST, "rename");
  FileEntry entry = entries_[request.path];
  entry.path = request.target;
  entries_.erase(request.path);
  entries_[request.target] = entry;
  contents_[request.target] = std::move(contents_[request.path]);
  uint8_t flags = existed ? agent::bit(agent::DoneFlag::kExisted) : uint8_t{0};
  return agent::encode_record(entry) + agent::encode_done(flags);
}

std::string FakeFiles::store(const std::string& path, std::string bytes, uint32_t mode) {
  bool existed = entries_.contains(path);
  FileEntry& entry = entries_[path];
  entry.path = path;
  entry.type = EntryType::kFile;
  entry.mode = mode == 0 ? 0644 : mode;
  entry.size = bytes.size();
  entry.uid = entry.gid = 1000;
  entry.modified_ns = 1'700'000'000'000'000'000;
  entry.inode = next_inode_++;
  contents_[path] = std::move(bytes);
  uint8_t flags = existed ? agent::bit(agent::DoneFlag::kExisted) : uint8_t{0};
  return agent::encode_record(entry) + agent::encode_done(flags);
}

void FakeFiles::take(Channel& channel) {
  const FileRequest& request = channel.request;
  bool unpacks = request.operation == FileOperation::kUnpack;
  for (auto next = channel.reader.next(); next && *next && !channel.done;
       next = channel.reader.next()) {
    agent::FileRecord record = **next;
    if (record.type == RecordType::kBytes) {
      channel.taken += record.payload;
      continue;
    }
    bool is_file = channel.unpacking.type == EntryType::kFile;
    if (unpacks && !channel.unpacking.path.empty() && is_file) {
      store(beneath(request.path) + channel.unpacking.path, std::exchange(channel.taken, ""),
            channel.unpacking.mode);
    } else if (unpacks && !channel.unpacking.path.empty()) {
      FileEntry entry = channel.unpacking;
      entry.path = beneath(request.path) + entry.path;
      entries_[entry.path] = entry;
    }
    if (record.type == RecordType::kEntry) {
      channel.unpacking = *agent::decode_entry(record.payload);
      continue;
    }
    channel.done = true;
    bool exists = entries_.contains(request.path);
    if (unpacks) {
      channel.out = agent::encode_done();
    } else if (request.path.ends_with(".full")) {
      channel.out = fail(ENOSPC, "write");
    } else if (exists && !is_flag_set(request, agent::FileFlag::kReplace)) {
      channel.out = fail(EEXIST, "link");
    } else {
      channel.out = store(request.path, std::move(channel.taken), request.mode);
    }
  }
}

std::string FakeFiles::flush(uint32_t number) {
  Channel& channel = channels_.at(number);
  std::string frames;
  while (!channel.out.empty() && channel.sent < channel.credit) {
    uint64_t most = std::min<uint64_t>(channel.credit - channel.sent, channel.out.size());
    size_t count = std::min<uint64_t>(most, agent::kMaxChannelDataBytes);
    frames += agent::encode_channel_data(number, std::string_view(channel.out).substr(0, count));
    channel.out.erase(0, count);
    channel.sent += count;
  }
  if (!channel.done || !channel.out.empty()) return frames;
  channels_.erase(number);
  return frames + agent::encode_channel_end(number) + agent::encode(number, agent::ChannelClose{});
}

}  // namespace atl::isolate
