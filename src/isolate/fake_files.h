// FakeFiles: the files of a fake agent, in memory, behind the real channel and file protocol. Knows
// stat, list, read, write, remove, make directory, move, pack, unpack and ports. Names that end so
// play a failure: `.full` cannot be written (ENOSPC at the end), `.denied` cannot be touched
// (EACCES), `.cut` fails in the middle when it is read, `.lies` gives less than its size,
// `.outside` is listed as /etc/outside, `.hang` never answers.
#pragma once

#include <map>
#include <string>

#include "agent/channel_protocol.h"
#include "agent/file_protocol.h"

namespace atl::isolate {

class FakeFiles {
 public:
  // What the agent answers to one frame of a channel.
  std::string answer(const agent::Frame& frame);
  // The connection is another one: no channel is open.
  void drop_channels() { channels_.clear(); }

  size_t open_channels() const { return channels_.size(); }
  std::map<std::string, agent::FileEntry>& entries() { return entries_; }
  std::map<std::string, std::string>& contents() { return contents_; }

 private:
  struct Channel {
    agent::FileRequest request;
    agent::RecordReader reader;
    std::string taken;  // of an upload
    agent::FileEntry unpacking;
    std::string out;  // not sent yet
    uint64_t received = 0;
    uint64_t sent = 0;
    uint64_t credit = agent::kChannelWindowBytes;
    bool done = false;
  };

  std::string open(const agent::Frame& frame);
  std::string carry_out(const agent::FileRequest& request);
  std::string make(const agent::FileRequest& request);
  std::string read(const agent::FileRequest& request);
  std::string list(const agent::FileRequest& request);
  std::string pack(const agent::FileRequest& request);
  std::string remove(const agent::FileRequest& request);
  std::string move(const agent::FileRequest& request);
  void take(Channel& channel);
  std::string store(const std::string& path, std::string bytes, uint32_t mode);
  std::string flush(uint32_t number);

  std::map<std::string, agent::FileEntry> entries_;
  std::map<std::string, std::string> contents_;  // of files
  std::map<uint32_t, Channel> channels_;
  uint64_t next_inode_ = 100;
};

}  // namespace atl::isolate
