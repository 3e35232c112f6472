#include "sandbox/sandbox.h"

#include <signal.h>

#include <boost/asio/steady_timer.hpp>

#include "agent/farewell.h"
#include "async/spawn.h"
#include "base/log.h"
#include "sandbox/pause.h"

namespace atl::sandbox {

namespace asio = boost::asio;

constexpr std::chrono::seconds kGreetingTime{10};
constexpr std::chrono::seconds kBootTime{60};  // the same for a machine, which boots first
constexpr std::chrono::milliseconds kReconnectPause{20};
constexpr int kMaxSilentStreams = 20;  // in a row, each broken before its hello
constexpr int kMaxViolations = 5;      // of the protocol, in its whole life
constexpr const char* kEndedForMemory = "what ran the sandbox was ended at its memory limit";
constexpr const char* kEndedForKernelMemory =
    "kernel_memory: it was ended because it made the host's kernel use memory that no limit counts";

namespace {

// Who kept what the agent ran in says why there is none any more.
Error ended_by(std::string_view farewell) {
  auto said = agent::decode_farewell(farewell);
  if (!said) return std::move(said).error();
  return Error(Code::kNotFound, kEndedForMemory).with_reason(verdict_name(Verdict::kOom));
}

}  // namespace

std::string_view state_name(State state) {
  switch (state) {
    case State::kCreating:
      return "creating";
    case State::kRunning:
      return "running";
    case State::kPaused:
      return "paused";
    case State::kFailed:
      return "failed";
    case State::kDeleting:
      return "deleting";
  }
  return "failed";
}

Error not_running(const Sandbox& sandbox) {
  if (sandbox.replaced_)
    return Error(Code::kUnavailable, "the sandbox is being made anew")
        .with_reason("agent_unavailable");
  bool wakes = sandbox.state() == State::kCreating && sandbox.row().released;
  if (sandbox.state() == State::kPaused || wakes)
    return Error(Code::kConflict, "the sandbox is paused").with_reason("sandbox_paused");
  return Error(Code::kConflict,
               "the sandbox is " + std::string(state_name(sandbox.state())) + ", not running")
      .with_reason("sandbox_not_running");
}

bool holds_memory(const Sandbox& sandbox) {
  return !sandbox.row_.released || sandbox.isolate_left_;
}

Sandbox::Sandbox(Services& services, store::SandboxRow row, Reservation reservation, Event& due)
    : services_(services),
      row_(std::move(row)),
      reservation_(std::move(reservation)),
      execs_(services, row_, time_, [this] { break_talk(); }),
      channels_(services.executor, services.clock),
      contexts_(services, execs_, row_),
      lifetime_(row_, services.clock, execs_, channels_, contexts_),
      changed_(services.executor),
      due_(due) {
  if (row_.state == "failed") state_ = State::kFailed;
}

void Sandbox::set_running() {
  state_ = State::kRunning;
  lifetime_.touch();
}

void Sandbox::begin_talk() {
  // detached: the talk owns a share of the sandbox and ends with its state
  spawn(services_.executor, talk(shared_from_this()));
}

Task<Result<void>> Sandbox::attach() {
  begin_talk();
  auto patience = row_.isolation == "jail" ? kGreetingTime : kBootTime;
  auto give_up = std::chrono::steady_clock::now() + patience;
  while (!greeted_ && talks()) {
    bool notified = co_await changed_.wait_until(give_up);
    if (!notified && !greeted_) co_return Error(Code::kTimeout, "the agent did not greet in time");
  }
  if (greeted_) co_return Result<void>();
  co_return Error(Code::kUnavailable, "the agent is gone: " + row_.failure);
}

void Sandbox::attach(WarmAgent agent) {
  greeted_ = true;
  if (agent.waiting) execs_.control().set_waiting(std::move(*agent.waiting), channels_);
  link_up(std::move(agent.link));
  begin_talk();
}

void Sandbox::link_up(std::shared_ptr<isolate::AgentLink> link) {
  link_ = link;
  execs_.control().link_up(link);
  channels_.link_up(link);
}

Task<void> Sandbox::talk(std::shared_ptr<Sandbox> self) {
  int silent = 0;
  int violations = 0;
  while (self->talks()) {
    auto ended = co_await self->talk_once();
    if (!self->talks()) co_return;
    ATOLL_CHECK(!ended.ok());
    silent = std::exchange(self->greeted_, false) ? 0 : silent + 1;
    violations += ended.error().code() == Code::kCorrupt ? 1 : 0;
    if (!self->execs_.silence().empty()) ended = Error(Code::kNotFound, self->execs_.silence());
    // An agent of a version that is not spoken here will say the same again.
    bool gone =
        ended.error().code() == Code::kNotFound || ended.error().code() == Code::kUnsupported;
    if (gone || silent > kMaxSilentStreams || violations > kMaxViolations) {
      Error why = std::move(ended).error();
      co_await self->lose_agent(std::move(why));
      co_return;
    }
    log_info("agent stream broke, connecting again",
             {{"sandbox", self->id().view()}, ended.error()});
    asio::steady_timer pause(self->services_.executor, kReconnectPause);
    co_await wait(pause);
  }
}

Task<Result<std::shared_ptr<isolate::AgentLink>>> Sandbox::connect() {
  if (greeted_) co_return link_;
  ATOLL_CO_TRY(isolate::AgentSocket socket, co_await services_.driver.connect_agent(id()));
  auto link = std::make_shared<isolate::AgentLink>(std::move(socket));
  link_ = link;
  auto greeted = co_await greet(*link);
  if (greeted) {
    link_up(link);
    co_return link;
  }
  link->close();
  if (link_ == link) link_.reset();
  co_return std::move(greeted).error();
}

Task<Result<void>> Sandbox::talk_once() {
  ATOLL_CO_TRY(std::shared_ptr<isolate::AgentLink> link, co_await connect());
  Result<void> heard;
  while (heard && talks()) {
    auto frame = co_await link->read();
    if (!frame) {
      heard = std::move(frame).error();
      break;
    }
    heard = co_await handle(*frame, *link);
  }
  channels_.link_lost();
  link->close();
  execs_.control().link_lost();
  if (link_ == link) link_.reset();
  if (heard) co_return Error(Code::kCancelled, "the sandbox ended");
  co_return heard;
}

void Sandbox::break_talk() {
  if (link_) link_->close();
}

Task<Result<void>> Sandbox::handle(agent::Frame frame, isolate::AgentLink& link) {
  switch (frame.type) {
    case agent::FrameType::kChannelData:
    case agent::FrameType::kChannelEnd:
    case agent::FrameType::kChannelCredit:
    case agent::FrameType::kChannelClose:
      co_return channels_.handle(frame);
    default:
      co_return co_await execs_.handle(frame, link);
  }
}

Task<Result<void>> Sandbox::greet(isolate::AgentLink& link) {
  ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
  if (frame.type == agent::FrameType::kFarewell) co_return ended_by(frame.payload);
  if (frame.type != agent::FrameType::kHello)
    co_return Error(Code::kCorrupt, "the agent did not begin with a hello");
  ATOLL_CO_TRY(agent::Hello hello, agent::decode_hello(frame.payload));
  if (hello.nonce != row_.nonce) co_return Error(Code::kCorrupt, "the agent has another nonce");
  ATOLL_CO_TRY(agent::Welcome welcome, co_await execs_.welcome(hello));
  link.send(agent::encode(welcome));
  execs_.send_unconfirmed(link);
  greeted_ = true;
  if (hello.release != ATOLL_VERSION)
    log_info("agent of another release", {{"sandbox", id().view()},
                                          {"release", hello.release},
                                          {"protocol_version", hello.version}});
  changed_.notify_all();
  co_return Result<void>();
}

// A sentry holds the memory of all its programs, so a kill in its group ended them. Its keeper
// tells whoever connects within a second, and may have been killed too: the kernel's count stays.
// Whoever was ended for the kernel's memory had no time to tell.
Task<std::string> Sandbox::why_ended(Error seen) {
  if (seen.reason() == verdict_name(Verdict::kOom)) co_return kEndedForMemory;
  auto used = co_await services_.driver.usage(id());
  if (!used) {
    log_warning("why it ended could not be read", {{"sandbox", id().view()}, used.error()});
    co_return seen.message();
  }
  if (used->ended_for_kernel_memory != 0) co_return kEndedForKernelMemory;
  if (row_.isolation == "gvisor" && used->memory_kills > 0) co_return kEndedForMemory;
  co_return seen.message();
}

Task<void> Sandbox::lose_agent(Error why) {
  if (!row_.released) {
    std::string failure = co_await why_ended(why);
    if (!talks()) co_return;
    Verdict verdict = failure == kEndedForMemory ? Verdict::kOom : Verdict::kSandboxGone;
    co_await fail(std::move(failure), verdict);
    co_return;
  }
  // It was being brought back: who does that keeps its files for another attempt.
  log_warning("an agent did not stay", {{"sandbox", id().view()}, why});
  agent_lost_ = true;
  changed_.notify_all();
}

Task<void> Sandbox::fail(std::string failure, Verdict verdict) {
  log_warning("sandbox failed", {{"sandbox", id().view()}, {"failure", failure}});
  state_ = State::kFailed;
  row_.failure = failure;
  row_.state = "failed";
  auto store_state = [row = row_](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_state(row.tenant, row.id, "failed", row.failure);
  };
  auto stored = co_await services_.ledger.run_to_free(store_state);
  if (!stored) log_error("state could not be stored", {{"sandbox", id().view()}, stored.error()});
  contexts_.end_all(verdict);
  co_await execs_.end_all(verdict, failure);
  changed_.notify_all();
  due_.notify_all();
}

Task<Result<std::shared_ptr<Exec>>> Sandbox::start_exec(ExecRequest request,
                                                        std::string description) {
  auto self = shared_from_this();
  ATOLL_CO_TRY_VOID(co_await Pause::begin_step(self, "before an exec"));
  auto created = co_await execs_.create(std::move(request), std::move(description));
  if (!created) co_return std::move(created).error();
  std::shared_ptr<Exec> exec = *created;
  if (!talks()) co_await execs_.end_all(Verdict::kSandboxGone, "the sandbox ended");
  co_return exec;
}

Task<Result<void>> Sandbox::checkpoint(std::string label) {
  if (row_.checkpoint != "each" || !services_.checkpoint) co_return Result<void>();
  auto self = shared_from_this();
  auto kept = co_await services_.checkpoint(self, std::move(label));
  if (kept && state_ != State::kRunning) co_return not_running(*this);
  co_return kept;
}

Result<void> Sandbox::apply(const store::SandboxRow& row) {
  store::SandboxRow after = row;
  // These are its own and may have changed since `row` was copied.
  after.state = row_.state;
  after.failure = row_.failure;
  after.next_exec = row_.next_exec;
  after.paused_at_ms = row_.paused_at_ms;
  after.paused_sequence = row_.paused_sequence;
  after.released = row_.released;
  // One without an isolate is promised what it needs when it gets one.
  if (!row_.released) ATOLL_TRY_VOID(reservation_.resize(limits_of(after)));
  lifetime_.change(row_, after);
  row_ = std::move(after);
  return {};
}

void Sandbox::set_isolate_removed() {
  isolate_removed_ = true;
  reservation_.release();
  volumes_.release();
}

Task<void> Sandbox::begin_deletion(std::string why) {
  auto self = shared_from_this();
  state_ = State::kDeleting;
  row_.state = "deleting";
  if (link_) link_->close();
  changed_.notify_all();
  contexts_.end_all();
  co_await execs_.end_all(Verdict::kSandboxGone, why);
}

}  // namespace atl::sandbox
