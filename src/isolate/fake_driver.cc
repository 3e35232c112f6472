#include "isolate/fake_driver.h"

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"
#include "isolate/fake_exec.h"

namespace atl::isolate {

namespace asio = boost::asio;

struct FakeDriver::Agent {
  explicit Agent(const LaunchSpec& spec)
      : nonce(spec.nonce), limits(spec.limits), layer_end(spec.layer_end) {}

  std::string output_from(uint32_t number, uint64_t stdout_from, uint64_t stderr_from,
                          uint64_t speech_from) {
    std::string frames = agent::encode_started(number, 2);
    FakeExec& exec = execs.at(number);
    exec.speech_sent = speech_from;
    exec.stdout_sent = exec.stdout_bytes.size();
    if (exec.reading != FakeExec::Reading::kNothing || exec.interpreter)
      frames += agent::encode(number, agent::InputTaken{exec.input_taken, exec.input_closed});
    append_stream(frames, number, agent::Stream::kStdout, exec.stdout_bytes, stdout_from);
    append_stream(frames, number, agent::Stream::kStderr, exec.stderr_bytes, stderr_from);
    frames += unsent_speech(number, exec);
    if (exec.exit) frames += agent::encode(number, *exec.exit);
    return frames;
  }
  static std::string unsent_speech(uint32_t number, FakeExec& exec) {
    std::string frames;
    if (!exec.interpreter) return frames;
    const std::string& speech = exec.interpreter->speech();
    append_stream(frames, number, agent::Stream::kSpeech, speech,
                  std::exchange(exec.speech_sent, speech.size()));
    return frames;
  }
  static void append_stream(std::string& frames, uint32_t number, agent::Stream stream,
                            const std::string& bytes, uint64_t from) {
    std::string_view rest = bytes;
    for (rest.remove_prefix(std::min<size_t>(from, rest.size())); !rest.empty();) {
      std::string_view piece = rest.substr(0, agent::kMaxOutputBytes);
      agent::Output output{stream, bytes.size() - rest.size(), piece};
      frames += agent::encode(number, output);
      rest.remove_prefix(piece.size());
    }
  }
  std::string hello() const {
    if (!farewell.empty()) return farewell;
    agent::Hello hello{version, nonce, {}, ATOLL_VERSION};
    for (const auto& [number, exec] : execs)
      hello.execs.push_back({number, exec.stdout_bytes.size(), exec.stderr_bytes.size(),
                             exec.interpreter ? exec.interpreter->speech().size() : 0});
    return agent::encode(hello);
  }
  // One frame for an exec that runs.
  std::string control(const agent::Frame& frame, FakeExec& exec) {
    std::string frames;
    if (frame.type == agent::FrameType::kSignal) {
      exec.take_signal(*agent::decode_signal(frame.payload));
    } else if (frame.type == agent::FrameType::kResize) {
      auto size = agent::decode_resize(frame.payload);
      exec.stdout_bytes += std::to_string(size->columns) + "x" + std::to_string(size->rows) + "\n";
    } else if (frame.type == agent::FrameType::kInput) {
      auto input = agent::decode_input(frame.payload);
      if (exec.reading == FakeExec::Reading::kRefuses) return frames;
      exec.take_input(input->offset, input->data);
      frames += agent::encode(frame.number, agent::InputTaken{exec.input_taken, false});
    } else if (frame.type == agent::FrameType::kInputEnd) {
      exec.input_closed = true;
      frames += agent::encode(frame.number, agent::InputTaken{exec.input_taken, true});
      exec.end(agent::Ending::kExited, 0, agent::Cause::kProgram);
    }
    frames += unsent_speech(frame.number, exec);
    append_stream(frames, frame.number, agent::Stream::kStdout, exec.stdout_bytes,
                  std::exchange(exec.stdout_sent, exec.stdout_bytes.size()));
    if (exec.exit) frames += agent::encode(frame.number, *exec.exit);
    return frames;
  }
  // What the agent answers to one frame of atolld.
  std::string answer(const agent::Frame& frame) {
    std::string frames;
    auto running = execs.find(frame.number);
    if (frame.type != agent::FrameType::kExitAcknowledge && running != execs.end() &&
        !running->second.exit)
      frames += control(frame, running->second);
    if (frame.type == agent::FrameType::kWelcome) {
      auto welcome = agent::decode_welcome(frame.payload);
      ATOLL_CHECK(welcome.ok());
      ATOLL_CHECK(welcome->version == version);
      for (const agent::ExecOffsets& entry : welcome->execs)
        frames +=
            output_from(entry.exec, entry.stdout_offset, entry.stderr_offset, entry.speech_offset);
    } else if (frame.type == agent::FrameType::kStart) {
      auto start = agent::decode_start(frame.payload);
      ATOLL_CHECK(start.ok());
      bool is_new = execs.emplace(frame.number, FakeExec::run(*start)).second;
      if (is_new) frames += output_from(frame.number, 0, 0, 0);
    } else if (frame.type == agent::FrameType::kExitAcknowledge) {
      execs.erase(frame.number);
    } else if (frame.type >= agent::FrameType::kOpenFiles) {
      frames += files.answer(frame);
    }
    return frames;
  }

  static Task<void> serve(std::shared_ptr<Agent> self, std::shared_ptr<AgentSocket> socket) {
    agent::FrameReader reader(agent::FrameReader::Side::kAgent);
    self->files.drop_channels();
    std::string out = self->hello();
    while (true) {
      asio::const_buffer bytes = asio::buffer(out);
      auto [write_error, written] = co_await asio::async_write(*socket, bytes, kAsTuple);
      if (write_error) co_return;
      out.clear();
      auto next = reader.next();
      ATOLL_CHECK(next.ok());
      if (*next) {
        out = self->answer(**next);
        continue;
      }
      asio::mutable_buffer room(reader.prepare(65536), 65536);
      auto [read_error, count] = co_await socket->async_read_some(room, kAsTuple);
      if (read_error) co_return;
      reader.commit(count);
    }
  }
  void drop() {
    if (!socket) return;
    boost::system::error_code ignored;
    socket->close(ignored);
    socket.reset();
  }

  Nonce nonce;
  uint16_t version = agent::kProtocolVersion;
  std::string farewell;  // instead of a hello
  WallLimits limits;
  LayerEnd layer_end;
  std::map<uint32_t, FakeExec> execs;
  FakeFiles files;
  std::shared_ptr<AgentSocket> socket;  // the agent's end; shared with the serving task
  bool dead = false;
  Trial trial = Trial::kWorks;
};

FakeDriver::FakeDriver(asio::any_io_executor executor) : executor_(std::move(executor)) {}

FakeDriver::~FakeDriver() {
  for (auto& [id, fake] : agents_) fake->drop();
}

Task<Result<uint32_t>> FakeDriver::probe() { co_return static_cast<uint32_t>(Extra::kLandlock); }

Task<Result<void>> FakeDriver::launch(LaunchSpec spec) {
  if (next_launch_error) {
    Error error = std::move(*next_launch_error);
    next_launch_error.reset();
    co_return error;
  }
  if (launch_time.count() > 0) {
    asio::steady_timer timer(co_await asio::this_coro::executor, launch_time);
    co_await timer.async_wait(kAsTuple);
  }
  bool begins_anew = !kept.contains(spec.id);
  if (begins_anew && spec.snapshot && !snapshots.contains(*spec.snapshot))
    co_return Error(Code::kNotFound, "no such snapshot").with_reason("snapshot_lost");
  auto made = std::make_shared<Agent>(spec);
  if (begins_anew && spec.snapshot) made->files = snapshots.at(*spec.snapshot);
  if (!begins_anew) made->files = kept.at(spec.id);
  agents_.emplace(spec.id, std::move(made));
  if (!spec.volumes.empty()) places.insert_or_assign(spec.id, spec.volumes);
  if (spec.toolbox) toolboxes.emplace(spec.id, *spec.toolbox);
  if (spec.monitor) machines.insert(spec.id);
  if (spec.monitor) agents_.at(spec.id)->trial = trial_of(*spec.monitor);
  co_return Result<void>();
}

FakeDriver::Trial FakeDriver::trial_of(const Monitor& monitor) const {
  if (monitor.kind == Monitor::Kind::kSentry)
    return monitor.platform == Platform::kPtrace ? ptrace : systrap;
  return monitor.virtualization == Virtualization::kHardware ? hardware : Trial::kWorks;
}

Task<Result<void>> FakeDriver::remove(SandboxId id) {
  if (remove_error) co_return *remove_error;
  kill_agent(id);
  agents_.erase(id);
  frozen.erase(id);
  places.erase(id);
  kept.erase(id);
  co_return Result<void>();
}

Task<Result<void>> FakeDriver::vacate(SandboxId id) { return remove(id); }

Task<Result<void>> FakeDriver::release(SandboxId id) {
  if (remove_error) co_return *remove_error;
  if (auto found = agents_.find(id); found != agents_.end()) {
    found->second->files.drop_channels();
    kept.insert_or_assign(id, found->second->files);
  }
  if (!kept.contains(id)) co_return Error(Code::kNotFound, "no such files");
  kill_agent(id);
  agents_.erase(id);
  frozen.erase(id);
  places.erase(id);
  co_return Result<void>();
}

Task<Result<void>> FakeDriver::set_programs(SandboxId id, Programs programs) {
  ++freezes_and_thaws;
  if (!agents_.contains(id)) co_return Error(Code::kNotFound, "no such isolate");
  if (!freeze_errors.empty()) {
    Error error = std::move(freeze_errors.front());
    freeze_errors.pop_front();
    co_return error;
  }
  if (programs == Programs::kFrozen)
    frozen.insert(id);
  else
    frozen.erase(id);
  co_return Result<void>();
}

// Holds as many bytes as there are files' ones, and those that it had.
Task<Result<Cut>> FakeDriver::cut(SandboxId id, SnapshotId snapshot, uint64_t inherited_bytes) {
  auto found = agents_.find(id);
  if (found == agents_.end() && !kept.contains(id))
    co_return Error(Code::kNotFound, "no such isolate");
  FakeFiles files = found == agents_.end() ? kept.at(id) : found->second->files;
  files.drop_channels();
  uint64_t bytes = inherited_bytes;
  for (const auto& [path, content] : files.contents()) bytes += content.size();
  snapshots.insert_or_assign(snapshot, std::move(files));
  co_return Cut{bytes, std::chrono::microseconds(1)};
}

Task<Result<void>> FakeDriver::remove_snapshot(SnapshotId snapshot) {
  snapshots.erase(snapshot);
  co_return Result<void>();
}

Task<Result<std::vector<SnapshotId>>> FakeDriver::list_snapshots() {
  std::vector<SnapshotId> ids;
  for (const auto& [id, files] : snapshots) ids.push_back(id);
  co_return ids;
}

Task<Result<void>> FakeDriver::set_aside(Found found) {
  aside.insert(std::visit([](const auto& id) { return id.string(); }, found));
  if (const auto* isolate = std::get_if<SandboxId>(&found)) co_return co_await remove(*isolate);
  if (const auto* snapshot = std::get_if<SnapshotId>(&found)) snapshots.erase(*snapshot);
  if (const auto* volume = std::get_if<VolumeId>(&found)) volumes.erase(*volume);
  co_return Result<void>();
}

Task<Result<void>> FakeDriver::sweep_lost_found() { co_return Result<void>(); }

Task<Result<void>> FakeDriver::create_volume(VolumeId volume, uint64_t limit_bytes) {
  volumes.emplace(volume, limit_bytes);
  co_return Result<void>();
}

Task<Result<void>> FakeDriver::remove_volume(VolumeId volume) {
  volumes.erase(volume);
  co_return Result<void>();
}

Task<Result<std::string>> FakeDriver::sign_manifest(Digest) {
  co_return Error(Code::kUnsupported, "nobody signs here");
}

Task<Result<std::vector<VolumeId>>> FakeDriver::list_volumes() {
  std::vector<VolumeId> ids;
  for (const auto& [id, limit] : volumes) ids.push_back(id);
  co_return ids;
}

Task<Result<std::vector<SandboxId>>> FakeDriver::list() {
  std::vector<SandboxId> ids;
  for (const auto& [id, fake] : agents_) ids.push_back(id);
  co_return ids;
}

Task<Result<std::string>> FakeDriver::receipt(SandboxId id) {
  if (!agents_.contains(id)) co_return Error(Code::kNotFound, "there is no such isolate");
  co_return "{\"receipt\":{\"sandbox\":\"" + id.string() + "\",\"driver\":\"fake\"}}\n";
}

Task<Result<linux::ResourceUsage>> FakeDriver::usage(SandboxId id) {
  if (!agents_.contains(id)) co_return Error(Code::kNotFound, "there is no such isolate");
  co_return used.contains(id) ? used.at(id) : linux::ResourceUsage{};
}

Task<Result<void>> FakeDriver::remove_image(Digest) { co_return Result<void>(); }

Task<Result<void>> FakeDriver::set_network(SandboxId id, uint64_t, std::string policy) {
  networks_[id] = std::move(policy);
  co_return Result<void>();
}

// One row, so that pages have something to show: the policy that is in force.
Task<Result<std::string>> FakeDriver::call_egress(EgressCall) {
  co_return Error(Code::kUnsupported, "the driver has no egress").with_reason("no_egress");
}

Task<Result<EgressPage>> FakeDriver::read_egress(SandboxId id, uint64_t offset) {
  EgressPage page{.rows = {}, .next = 1};
  if (offset == 0) page.rows.push_back("{\"n\":1,\"policy\":" + networks_[id] + "}");
  co_return page;
}

Task<Result<AgentSocket>> FakeDriver::connect_agent(SandboxId id) {
  auto found = agents_.find(id);
  if (found == agents_.end() || found->second->dead)
    co_return Error(Code::kNotFound, "connect to the agent: it is gone");
  auto caller = co_await asio::this_coro::executor;
  AgentSocket ours(caller);
  auto theirs = std::make_shared<AgentSocket>(executor_);
  boost::system::error_code error;
  asio::local::connect_pair(ours, *theirs, error);
  if (error) co_return Error(Code::kUnavailable, error.message());
  found->second->drop();
  found->second->socket = theirs;
  found->second->version = spoken_version;
  found->second->farewell = farewell;
  Trial trial = found->second->trial;
  if (trial == Trial::kEnds) found->second->drop();
  // detached: the task owns a share of the agent and ends when its socket is closed
  if (trial == Trial::kWorks) spawn(executor_, Agent::serve(found->second, theirs));
  co_return ours;
}

void FakeDriver::kill_agent(SandboxId id) {
  auto found = agents_.find(id);
  if (found == agents_.end()) return;
  found->second->dead = true;
  found->second->drop();
}

void FakeDriver::lose_power() {
  for (auto& [id, fake] : agents_) {
    fake->files.drop_channels();
    if (fake->layer_end == LayerEnd::kKept) kept.insert_or_assign(id, fake->files);
    fake->dead = true;
    fake->drop();
  }
  agents_.clear();
  frozen.clear();
}

void FakeDriver::drop_stream(SandboxId id) { agents_.at(id)->drop(); }

Task<Result<void>> FakeDriver::change_limits(SandboxId id, WallLimits limits) {
  auto found = agents_.find(id);
  if (found == agents_.end()) co_return Error(Code::kNotFound, "no such isolate");
  if (!limit_change_errors.empty()) {
    Error error = std::move(limit_change_errors.front());
    limit_change_errors.pop_front();
    co_return error;
  }
  found->second->limits = limits;
  co_return Result<void>();
}

const WallLimits& FakeDriver::limits(SandboxId id) const { return agents_.at(id)->limits; }

void FakeDriver::forget_execs(SandboxId id) { agents_.at(id)->execs.clear(); }

FakeFiles& FakeDriver::files(SandboxId id) { return agents_.at(id)->files; }

void FakeDriver::inject(SandboxId id, std::string bytes) {
  boost::system::error_code ignored;
  auto& socket = agents_.at(id)->socket;
  if (socket) asio::write(*socket, asio::buffer(bytes), ignored);
}

}  // namespace atl::isolate
