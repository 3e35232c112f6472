#include "sandbox/warm_agent.h"

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/imprint_protocol.h"
#include "agent/still_files.h"
#include "sandbox/rehearsal.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kWarmTime{30};
// A kernel of its own boots first, perhaps emulated, and then all is rehearsed.
constexpr std::chrono::seconds kWarmTimeOfKernels{180};
constexpr uint32_t kNumber = 1;  // of the first exec of a sandbox
constexpr int kOften = 3;
// After which a machine that nothing is asked of rests: the keepers wait 0.2 s.
constexpr std::chrono::milliseconds kRest{300};

using isolate::AgentLink;

bool has_printed(const agent::ExecOffsets& one) {
  return one.stdout_offset != 0 || one.stderr_offset != 0 || one.speech_offset != 0;
}

// Nothing runs there but what waited, if that is said, and perhaps its understudy, and neither has
// printed anything.
bool is_known(const std::vector<agent::ExecOffsets>& execs, bool waited) {
  if (!waited || execs.empty()) return !waited && execs.empty();
  bool understudied = execs.size() == 2 && execs[1].exec == kUnderstudy;
  if (execs[0].exec != kNumber || (execs.size() != 1 && !understudied)) return false;
  return std::none_of(execs.begin(), execs.end(), has_printed);
}

struct Greeted {
  uint16_t version = 0;  // that the agent speaks
  bool understudied = false;
};

// An understudy that is not wanted is left out of the welcome, and ends.
Task<Result<Greeted>> greet(AgentLink& link, isolate::Nonce nonce, const CopyOf& copy) {
  ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
  if (frame.type != agent::FrameType::kHello)
    co_return Error(Code::kCorrupt, "the agent did not begin with a hello");
  ATOLL_CO_TRY(agent::Hello hello, agent::decode_hello(frame.payload));
  if (hello.nonce != nonce || !is_known(hello.execs, copy.waited.has_value()))
    co_return Error(Code::kCorrupt, "the agent is not the one that was started");
  agent::Welcome welcome{hello.version, hello.execs};
  bool rehearses = copy.rehearsal != CopyOf::Rehearsal::kNone;
  if (!rehearses && welcome.execs.size() == 2) welcome.execs.pop_back();
  link.send(agent::encode(welcome));
  Greeted greeted{hello.version, welcome.execs.size() == 2};
  co_return greeted;
}

Task<Result<WaitingProgram>> start(AgentLink& link, agent::Start program, CopyOf copy) {
  WaitingProgram waiting{.number = kNumber, .open_files = program.open_files};
  bool often = copy.rehearsal == CopyOf::Rehearsal::kOften;
  if (often) ATOLL_CO_TRY_VOID(co_await run_through(link, program));
  std::string lent = agent::encode_imprint(kNumber);
  if (copy.imprint) ATOLL_CO_TRY_VOID(co_await link.send_with(lent, copy.imprint->fd()));
  link.send(agent::encode(kNumber, program));
  ATOLL_CO_TRY(agent::Frame started, co_await expect(link, agent::FrameType::kStarted, kNumber));
  ATOLL_CO_TRY(waiting.pid, agent::decode_started(started.payload));
  waiting.copied = copy.imprint != nullptr;
  bool waits = waiting.copied && copy.rehearsal == CopyOf::Rehearsal::kNone;
  if (!waits) ATOLL_CO_TRY_VOID(co_await await_ready(link, kNumber, waiting.copied));
  for (int i = 0; often && i < kOften; ++i)
    ATOLL_CO_TRY_VOID(co_await await_ready(link, kNumber, true));
  waiting.environment = std::move(program.environment);
  co_return waiting;
}

Task<void> pause(std::chrono::milliseconds time) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
  co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

// What waited in another machine, whose memory this one begins with. Its agent has told it so, and
// it says that it is ready when it has made anew what must not be the same twice. The understudy's
// program comes when the machine has rested, as the user's will: what a kernel does after a rest it
// does then for the first time.
Task<Result<WaitingProgram>> take_up(AgentLink& link, WaitingProgram waited, bool understudied,
                                     CopyOf::Rehearsal rehearsal) {
  ATOLL_CO_TRY(agent::Frame started, co_await expect(link, agent::FrameType::kStarted, kNumber));
  ATOLL_CO_TRY(waited.pid, agent::decode_started(started.payload));
  ATOLL_CO_TRY_VOID(co_await await_ready(link, kNumber, false));
  if (understudied) {
    co_await pause(kRest);
    ATOLL_CO_TRY_VOID(co_await run_understudy(link, waited.environment));
  }
  bool often = rehearsal == CopyOf::Rehearsal::kOften;
  for (int i = 0; often && i < (understudied ? 1 : kOften); ++i)
    ATOLL_CO_TRY_VOID(co_await await_ready(link, kNumber, true));
  waited.copied = true;
  co_return waited;
}

}  // namespace

Task<Result<void>> lend(AgentLink& link, int memory) {
  std::string lent = agent::encode_imprint(agent::kLaidDown);
  co_return co_await link.send_with(lent, memory);
}

Task<Result<WarmAgent>> warm_agent(Services& services, SandboxId id, isolate::Nonce nonce,
                                   std::optional<agent::Start> program, CopyOf copy) {
  ATOLL_CO_TRY(isolate::AgentSocket socket, co_await services.driver.connect_agent(id));
  auto link = std::make_shared<AgentLink>(std::move(socket));
  bool has_kernel = copy.rehearsal == CopyOf::Rehearsal::kOften;
  boost::asio::steady_timer patience(services.executor,
                                     has_kernel ? kWarmTimeOfKernels : kWarmTime);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  co_return co_await warm_agent(link, nonce, std::move(program), std::move(copy));
}

Task<Result<WarmAgent>> warm_agent(std::shared_ptr<AgentLink> link, isolate::Nonce nonce,
                                   std::optional<agent::Start> program, CopyOf copy) {
  if (copy.memory >= 0) ATOLL_CO_TRY_VOID(co_await lend(*link, copy.memory));
  if (copy.waited) link->send(std::string(1, agent::kBeginNote));
  ATOLL_CO_TRY(Greeted greeted, co_await greet(*link, nonce, copy));
  WarmAgent agent{link, std::nullopt};
  if (copy.waited) {
    bool understudied = greeted.understudied;
    ATOLL_CO_TRY(agent.waiting,
                 co_await take_up(*link, std::move(*copy.waited), understudied, copy.rehearsal));
    co_return agent;
  }
  if (!program || greeted.version < agent::kControlledSince) co_return agent;
  ATOLL_CO_TRY(agent.waiting, co_await start(*link, std::move(*program), std::move(copy)));
  co_return agent;
}

}  // namespace atl::sandbox
