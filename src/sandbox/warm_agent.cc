#include "sandbox/warm_agent.h"

#include <boost/asio/steady_timer.hpp>

#include "agent/imprint_protocol.h"
#include "agent/still_files.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kWarmTime{30};
// A kernel of its own boots first, perhaps emulated, and then all is rehearsed.
constexpr std::chrono::seconds kWarmTimeOfKernels{180};
constexpr uint32_t kNumber = 1;   // of the first exec of a sandbox
constexpr uint32_t kChannel = 1;  // free again before the sandbox has a user
constexpr std::string_view kReady = "ready\n";
constexpr std::string_view kMakeReady("\xff\xff\xff\xff");  // a rehearsal
constexpr int kOften = 3;
// Of a program that is run to its end ahead; no user's has these.
constexpr uint32_t kRehearsed = 1'000'000;
constexpr uint32_t kRehearsalChannel = 1'000'000;
constexpr uint64_t kRehearsalOutputBytes = 4096;

using isolate::AgentLink;

// Gives the version that the agent speaks.
Task<Result<uint16_t>> greet(AgentLink& link, isolate::Nonce nonce) {
  ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
  if (frame.type != agent::FrameType::kHello)
    co_return Error(Code::kCorrupt, "the agent did not begin with a hello");
  ATOLL_CO_TRY(agent::Hello hello, agent::decode_hello(frame.payload));
  if (hello.nonce != nonce || !hello.execs.empty())
    co_return Error(Code::kCorrupt, "the agent is not the one that was started");
  agent::Welcome welcome{hello.version, {}};
  link.send(agent::encode(welcome));
  co_return hello.version;
}

// The next frame of a type and number; those of its input are nothing to wait for, nor is what is
// left of a program that was run ahead, and any other means that the program is not what it should
// be.
Task<Result<agent::Frame>> expect(AgentLink& link, agent::FrameType type, uint32_t number) {
  while (true) {
    ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
    if (frame.type == type && frame.number == number) co_return frame;
    bool harmless = frame.type == agent::FrameType::kInputTaken ||
                    frame.type == agent::FrameType::kChannelCredit ||
                    frame.type == agent::FrameType::kChannelEnd;
    bool rehearsed = frame.number == kRehearsed;  // also its channel
    if (harmless || (rehearsed && frame.type != agent::FrameType::kStartFailed)) continue;
    if (frame.type == agent::FrameType::kStartFailed) {
      ATOLL_CO_TRY(agent::StartFailed failed, agent::decode_start_failed(frame.payload));
      co_return Error::from_errno("start a waiting program: " + failed.operation,
                                  failed.system_errno);
    }
    co_return Error(Code::kUnavailable, "a waiting program answered with " +
                                            std::string(agent::frame_name(frame.type)));
  }
}

// A copy waits where its zygote did, and makes itself ready when it is told to.
Task<Result<void>> await_ready(AgentLink& link, uint32_t number, bool asked) {
  agent::OpenControl open{number, std::nullopt};
  link.send(agent::encode(kChannel, open));
  if (asked) link.send(agent::encode_channel_data(kChannel, kMakeReady));
  ATOLL_CO_TRY(agent::Frame said, co_await expect(link, agent::FrameType::kChannelData, kChannel));
  if (said.payload != kReady) co_return Error(Code::kUnavailable, "a waiting program is not ready");
  link.send(agent::encode(kChannel, agent::ChannelClose{}));
  auto closed = co_await expect(link, agent::FrameType::kChannelClose, kChannel);
  if (!closed) co_return std::move(closed).error();
  co_return Result<void>();
}

// Another one, from its start to its end: so nothing of that is done for the first time when a
// user waits for it.
Task<Result<void>> run_through(AgentLink& link, agent::Start program) {
  ExecRequest request{.arguments = {"python3", "-c", "print(1)"},
                      .environment = program.environment};
  link.send(agent::encode(kRehearsed, program));
  auto started = co_await expect(link, agent::FrameType::kStarted, kRehearsed);
  if (!started) co_return std::move(started).error();
  ATOLL_CO_TRY_VOID(co_await await_ready(link, kRehearsed, false));
  agent::Beginning beginning{.output_limit_bytes = kRehearsalOutputBytes};
  agent::OpenControl open{kRehearsed, beginning};
  link.send(agent::encode(kRehearsalChannel, open));
  link.send(agent::encode_channel_data(kRehearsalChannel, beginning_message(request)));
  auto ended = co_await expect(link, agent::FrameType::kExit, kRehearsed);
  if (!ended) co_return std::move(ended).error();
  link.send(agent::encode(kRehearsalChannel, agent::ChannelClose{}));
  link.send(agent::encode_exit_acknowledge(kRehearsed));
  co_return Result<void>();
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

}  // namespace

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
  std::string lent = agent::encode_imprint(agent::kLaidDown);
  if (copy.memory >= 0) ATOLL_CO_TRY_VOID(co_await link->send_with(lent, copy.memory));
  ATOLL_CO_TRY(uint16_t version, co_await greet(*link, nonce));
  WarmAgent agent{link, std::nullopt};
  if (!program || version < agent::kControlledSince) co_return agent;
  if (copy.rehearsal == CopyOf::Rehearsal::kOnly) {
    ATOLL_CO_TRY_VOID(co_await run_through(*link, std::move(*program)));
    co_return agent;
  }
  ATOLL_CO_TRY(agent.waiting, co_await start(*link, std::move(*program), std::move(copy)));
  co_return agent;
}

}  // namespace atl::sandbox
