#include "agent/channel_table.h"

#include <linux/close_range.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/imprint_protocol.h"
#include "agent/imprint_taker.h"
#include "agent/still_files.h"
#include "base/file.h"
#include "base/ids.h"
#include "linux/clone.h"
#include "linux/descriptors.h"
#include "linux/unix_socket.h"

namespace atl::agent {
namespace {

// Leaves of workers have numbers that no exec has; that of a worker which does not go away at once
// is not needed again soon.
constexpr uint32_t kFirstLeaf = ExecId::kMax + 1;
constexpr uint32_t kLeaves = 1'000'000'000;

// The reader of what a process of its own writes: taking an imprint takes as long as somebody reads
// it.
Result<Fd> open_imprint(ExecTable& execs, uint32_t exec) {
  Exec* found = execs.find(exec);
  std::optional<pid_t> program = found == nullptr ? std::nullopt : found->program().pid();
  if (!program) return Error(Code::kNotFound, "open imprint", ESRCH);
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_STREAM));
  auto taker = linux::clone_process({});
  if (!taker) return Error(Code::kSystem, "clone", taker.error().system_errno());
  if (!taker->in_child()) return std::move(pair.ours);
  // Of the agent it has nothing else.
  auto theirs = static_cast<unsigned>(pair.theirs.get());
  close_range(STDERR_FILENO + 1, theirs - 1, 0);
  close_range(theirs + 1, linux::kHighestDescriptor, 0);
  auto taken = take_imprint(*program, kControlFd, pair.theirs.get());
  if (!taken) (void)write_all(pair.theirs.get(), taken.error().message());
  _exit(0);
}

Result<Fd> ask_machine(int notes, char note) {
  if (notes < 0) return Error(Code::kUnsupported, "ask the machine", EOPNOTSUPP);
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_STREAM));
  int asker[] = {pair.theirs.get()};
  ATOLL_TRY_VOID(linux::send_message(notes, {&note, 1}, asker, MSG_DONTWAIT));
  return std::move(pair.ours);
}

// Of an exec, or of what has a number that none has.
Result<Fd> open_any(ExecTable& execs, const OpenControl& control, int notes) {
  if (control.exec == kStillFiles) return ask_machine(notes, kStillNote);
  if (control.exec == kLaidDown) return ask_machine(notes, kLayDownNote);
  return execs.open_control(control);
}

// Refused ones wait here for their close to be told.
constexpr size_t kMaxRefused = 128;

}  // namespace

bool ChannelTable::obey(const Frame& frame, ExecTable& execs) {
  bool opens = frame.type == FrameType::kOpenFiles || frame.type == FrameType::kOpenPort ||
               frame.type == FrameType::kOpenControl || frame.type == FrameType::kOpenImprint;
  if (opens) return open(frame, execs);
  auto found = channels_.find(frame.number);
  return found == channels_.end() || pass_on(found->second, frame);
}

bool ChannelTable::open(const Frame& frame, ExecTable& execs) {
  if (channels_.contains(frame.number) || channels_.size() >= kMaxChannels + kMaxRefused)
    return false;
  bool full = channels_.size() >= kMaxChannels;
  if (full) {
    Error failure(Code::kExhausted, "too many channels", EAGAIN);
    channels_.try_emplace(frame.number, frame.number, failure);
  }
  if (frame.type == FrameType::kOpenFiles) {
    auto request = decode_file_request(frame.payload);
    if (request && !full) open_files(frame.number, *request, frame.payload);
    return request.ok();
  }
  if (frame.type == FrameType::kOpenControl) {
    auto control = decode_open_control(frame.payload);
    if (!control || full) return control.ok();
    open_control(frame.number, open_any(execs, *control, notes_), control->exec);
    return true;
  }
  if (frame.type == FrameType::kOpenImprint) {
    auto exec = decode_open_imprint(frame.payload);
    if (exec && !full) open_control(frame.number, open_imprint(execs, *exec), *exec);
    return exec.ok();
  }
  auto port = decode_open_port(frame.payload);
  if (port && !full) open_port(frame.number, *port);
  return port.ok();
}

void ChannelTable::open_files(uint32_t number, const FileRequest& request,
                              std::string_view payload) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    channels_.try_emplace(number, number, Error(Code::kSystem, "socketpair", errno));
    return;
  }
  Fd own(pair[0]), workers(pair[1]);
  uint32_t leaf = kFirstLeaf + workers_++ % kLeaves;
  auto launched =
      launcher_.launch_worker(Leaf(cgroup_.get(), leaf), request, payload, workers.get());
  if (!launched) {
    bury(leaf);
    channels_.try_emplace(number, number, launched.error());
    return;
  }
  channels_.try_emplace(number, number, std::move(own), Worker{launched->pid, leaf});
}

void ChannelTable::open_port(uint32_t number, uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    channels_.try_emplace(number, number, Error(Code::kSystem, "socket", errno));
    return;
  }
  auto spare = launcher_.check_spare_descriptors(socket.get());
  if (!spare)
    channels_.try_emplace(number, number, spare.error());
  else
    channels_.try_emplace(number, number, std::move(socket), port);
}

void ChannelTable::open_control(uint32_t number, Result<Fd> socket, uint32_t exec) {
  if (!socket)
    channels_.try_emplace(number, number, socket.error());
  else
    channels_.try_emplace(number, number, std::move(*socket), Control{exec});
}

bool ChannelTable::pass_on(Channel& channel, const Frame& frame) {
  if (frame.type == FrameType::kChannelData) {
    auto data = decode_channel_data(frame.payload);
    return data.ok() && channel.take_data(*data);
  }
  if (frame.type == FrameType::kChannelCredit) {
    auto credit = decode_channel_credit(frame.payload);
    if (credit) channel.take_credit(*credit);
    return credit.ok();
  }
  if (frame.type == FrameType::kChannelEnd) return frame.payload.empty() && channel.take_end();
  if (!decode_channel_close(frame.payload)) return false;
  channel.give_up();
  bury_worker_of(channel);
  return true;
}

void ChannelTable::bury(uint32_t leaf) {
  Remains remains(Leaf(cgroup_.get(), leaf), Fd(), Fd(), Joining::kRefused);
  remains.kill();
  remains.try_to_remove(std::chrono::steady_clock::now());
  if (!remains.gone()) remains_.insert_or_assign(leaf, std::move(remains));
}

void ChannelTable::bury_worker_of(Channel& channel) {
  if (auto leaf = channel.release_worker()) bury(*leaf);
}

void ChannelTable::drop_all() {
  for (auto& [number, channel] : channels_) bury_worker_of(channel);
  channels_.clear();
}

std::optional<std::string> ChannelTable::next_report(ExecTable& execs) {
  auto next = channels_.upper_bound(last_reported_);
  for (size_t i = 0; i < channels_.size(); ++i, ++next) {
    if (next == channels_.end()) next = channels_.begin();
    std::optional<uint32_t> number = next->second.speaks_for();
    Exec* speaker = number ? execs.find(*number) : nullptr;
    if (speaker != nullptr && !speaker->settle(launcher_.null_device())) continue;
    auto frame = next->second.next_report();
    if (!frame) continue;
    last_reported_ = next->first;
    if (next->second.over()) {
      bury_worker_of(next->second);
      channels_.erase(next);
    }
    return frame;
  }
  return std::nullopt;
}

void ChannelTable::add_watches(PollSet& polls) const {
  for (const auto& [number, channel] : channels_) channel.add_watches(polls);
  for (const auto& [leaf, remains] : remains_) remains.add_watches(polls);
}

bool ChannelTable::handle(Watch watch, short ready) {
  if (watch.source == Source::kLeftLeaf && watch.exec >= kFirstLeaf) {
    auto left = remains_.find(watch.exec);
    if (left == remains_.end()) return true;
    left->second.try_to_remove(std::chrono::steady_clock::now());
    if (left->second.gone()) remains_.erase(left);
    return true;
  }
  if (watch.source != Source::kChannel) return false;
  auto found = channels_.find(watch.exec);
  if (found != channels_.end()) found->second.handle(ready);
  return true;
}

std::optional<SteadyTime> ChannelTable::next_deadline() const {
  std::optional<SteadyTime> earliest;
  for (const auto& [leaf, remains] : remains_) {
    auto retry_at = remains.retry_at();
    if (retry_at && (!earliest || *retry_at < *earliest)) earliest = retry_at;
  }
  return earliest;
}

void ChannelTable::check_deadlines() {
  SteadyTime now = std::chrono::steady_clock::now();
  for (auto left = remains_.begin(); left != remains_.end();) {
    auto retry_at = left->second.retry_at();
    if (retry_at && *retry_at <= now) left->second.try_to_remove(now);
    left = left->second.gone() ? remains_.erase(left) : std::next(left);
  }
}

void ChannelTable::reaped(const ReapedChild& child) {
  for (auto& [number, channel] : channels_) channel.reaped(child.pid, child.wait_status);
}

}  // namespace atl::agent
