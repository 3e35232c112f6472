#include "sandbox/rehearsal.h"

#include "agent/channel_protocol.h"
#include "sandbox/waiting_program.h"

namespace atl::sandbox {

namespace {

constexpr uint32_t kChannel = 1;  // free again before the sandbox has a user
constexpr std::string_view kReady = "ready\n";
constexpr std::string_view kMakeReady("\xff\xff\xff\xff");  // a rehearsal
// Of programs that are run to their end ahead; no user's have these, nor greater ones.
constexpr uint32_t kRehearsed = 1'000'000;
constexpr uint32_t kRehearsalChannel = 1'000'000;
constexpr uint64_t kOutputBytes = 4096;
constexpr uint32_t kTimeoutMs = 60'000;

}  // namespace

using isolate::AgentLink;

Task<Result<agent::Frame>> expect(AgentLink& link, agent::FrameType type, uint32_t number) {
  while (true) {
    ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
    if (frame.type == type && frame.number == number) co_return frame;
    bool harmless = frame.type == agent::FrameType::kInputTaken ||
                    frame.type == agent::FrameType::kChannelCredit ||
                    frame.type == agent::FrameType::kChannelEnd;
    bool rehearsed = frame.number >= kRehearsed;  // also its channel
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

namespace {

Task<Result<void>> start_ahead(AgentLink& link, uint32_t number, agent::Start program) {
  link.send(agent::encode(number, program));
  auto started = co_await expect(link, agent::FrameType::kStarted, number);
  if (!started) co_return std::move(started).error();
  co_return co_await await_ready(link, number, false);
}

// With all that a user's has: a time, an end of its input, output that is taken.
Task<Result<void>> run_ahead(AgentLink& link, uint32_t number,
                             std::vector<std::string> environment) {
  ExecRequest request{.arguments = {"python3", "-c", "print(1)"},
                      .environment = std::move(environment)};
  agent::Beginning beginning{.timeout_ms = kTimeoutMs, .output_limit_bytes = kOutputBytes};
  agent::OpenControl open{number, beginning};
  link.send(agent::encode(kRehearsalChannel, open));
  link.send(agent::encode_channel_data(kRehearsalChannel, beginning_message(request)));
  link.send(agent::encode_channel_end(kRehearsalChannel));
  link.send(agent::encode_input_end(number, 0));
  ATOLL_CO_TRY(agent::Frame frame, co_await expect(link, agent::FrameType::kOutput, number));
  ATOLL_CO_TRY(agent::Output printed, agent::decode_output(frame.payload));
  agent::Acknowledge taken{printed.stream, printed.offset + printed.data.size()};
  link.send(agent::encode(number, taken));
  auto ended = co_await expect(link, agent::FrameType::kExit, number);
  if (!ended) co_return std::move(ended).error();
  link.send(agent::encode(kRehearsalChannel, agent::ChannelClose{}));
  link.send(agent::encode_exit_acknowledge(number));
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> run_through(AgentLink& link, agent::Start program) {
  std::vector<std::string> environment = program.environment;
  ATOLL_CO_TRY_VOID(co_await start_ahead(link, kRehearsed, std::move(program)));
  co_return co_await run_ahead(link, kRehearsed, std::move(environment));
}

Task<Result<void>> start_understudy(AgentLink& link, agent::Start program) {
  co_return co_await start_ahead(link, kUnderstudy, std::move(program));
}

Task<Result<void>> run_understudy(AgentLink& link, std::vector<std::string> environment) {
  ATOLL_CO_TRY_VOID(co_await await_ready(link, kUnderstudy, false));
  co_return co_await run_ahead(link, kUnderstudy, std::move(environment));
}

}  // namespace atl::sandbox
