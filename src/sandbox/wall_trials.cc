#include "sandbox/wall_trials.h"

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "async/spawn.h"
#include "base/log.h"

namespace atl::sandbox {

namespace {

using isolate::Monitor;
using isolate::Platform;
using isolate::Virtualization;

constexpr std::chrono::seconds kRest{2};
constexpr std::chrono::seconds kFailurePause{60};
constexpr isolate::WallLimits kLimits{
    .cpu_millis = 1000, .memory_bytes = 64ull << 20, .pids = 32, .disk_bytes = 32ull << 20};
// When gVisor was seen not to run, for the host may have been too busy.
constexpr std::chrono::minutes kSecondLook{5};
constexpr std::string_view kNotLaunched = "isolate_failed";
constexpr std::string_view kNoDevice = "hardware_virtualization_unavailable";

}  // namespace

WallTrials::WallTrials(Services& services, Templates& templates, Plan plan)
    : services_(services), templates_(templates), plan_(std::move(plan)) {
  templates_.findings().first_platform = plan_.platforms.front();
}

Task<void> WallTrials::run() {
  boost::asio::steady_timer pause(services_.executor);
  while (true) {
    co_await try_newest();
    pause.expires_after(kRest);
    co_await wait(pause);
  }
}

Task<void> WallTrials::try_newest() {
  co_await try_sentry();
  co_await try_machine();
}

bool WallTrials::is_final(const Result<void>& answered, const Trial& trial,
                          SteadyTime& not_before) {
  if (answered || answered.error().code() != Code::kUnavailable) return true;
  not_before = services_.clock.steady_now() + kFailurePause;
  log_warning("a wall could not be tried", {{"wall", trial.who}, answered.error()});
  return false;
}

Task<void> WallTrials::try_machine() {
  std::optional<Digest> image = templates_.offered().machine;
  const auto& found = templates_.findings().hardware;
  bool known = found && found->image == image;
  if (!image || known || services_.clock.steady_now() < machine_not_before_) co_return;
  Trial trial{.monitor = {*image, Monitor::Kind::kMachine, Virtualization::kHardware},
              .time = plan_.machine_time,
              .who = "a machine with KVM"};
  Result<void> booted = Error(Code::kUnsupported, "KVM is switched off");
  if (plan_.machine_time.count() > 0) booted = co_await launch(trial);
  if (!is_final(booted, trial, machine_not_before_)) co_return;
  std::string reason = booted ? "" : std::string(booted.error().message());
  log_info(booted ? "machines have the host's processor" : "machines are emulated",
           {{"reason", reason}});
  auto virtualization = booted ? Virtualization::kHardware : Virtualization::kEmulated;
  templates_.findings().hardware = HardwareFinding{*image, virtualization, reason};
}

Task<void> WallTrials::try_sentry() {
  std::optional<Digest> image = templates_.sentry_image();
  const auto& found = templates_.findings().platform;
  bool known = found && found->image == image && found->platform;
  bool rests = sentry_last_ == image && services_.clock.steady_now() < sentry_not_before_;
  if (!image || known || rests) co_return;
  sentry_last_ = image;
  PlatformFinding finding{*image, std::nullopt, ""};
  if (plan_.platforms.front() != Platform::kSystrap) finding.reason = "systrap is switched off";
  for (Platform platform : plan_.platforms) {
    bool traces = platform == Platform::kPtrace;
    Trial trial{.monitor = {.image = *image, .kind = Monitor::Kind::kSentry, .platform = platform},
                .time = plan_.sentry_time,
                .who = traces ? "a sentry by ptrace" : "a sentry by systrap"};
    auto answered = co_await launch(trial);
    bool refused = !answered && answered.error().reason() == kNotLaunched;
    if (!refused && !is_final(answered, trial, sentry_not_before_)) co_return;
    if (answered) finding.platform = platform;
    if (answered) break;
    if (!finding.reason.empty()) finding.reason += "; ";
    finding.reason += answered.error().message();
  }
  log_info(finding.platform ? "gVisor runs" : "gVisor does not run", {{"reason", finding.reason}});
  if (!finding.platform) sentry_not_before_ = services_.clock.steady_now() + kSecondLook;
  templates_.findings().platform = std::move(finding);
}

// Its disk is the image of what runs it: the agent needs nothing of it.
Task<Result<void>> WallTrials::launch(Trial trial) {
  isolate::LaunchSpec spec{SandboxId::draw(), trial.monitor.image, kLimits, {}};
  fill_random(spec.nonce);
  spec.monitor = trial.monitor;
  auto launched = co_await services_.driver.launch(spec);
  if (!launched && launched.error().reason() == kNoDevice)
    co_return Error(Code::kUnsupported, "this host has no /dev/kvm");
  if (!launched)
    co_return Error(Code::kUnavailable, launched.error().message())
        .with_reason(launched.error().reason());
  auto answered = co_await await_agent(spec.id, spec.nonce, trial);
  auto removed = co_await services_.driver.remove(spec.id);
  // The next start removes it: no row knows it.
  if (!removed) log_warning("an isolate that was tried stays", {removed.error()});
  co_return answered;
}

Task<Result<void>> WallTrials::await_agent(SandboxId id, isolate::Nonce nonce, Trial trial) {
  auto failed = [who = trial.who](std::string what) {
    return Error(Code::kUnsupported, fmt::format("{} {}", who, what));
  };
  auto socket = co_await services_.driver.connect_agent(id);
  if (!socket && socket.error().code() != Code::kNotFound)
    co_return Error(Code::kUnavailable, socket.error().message());
  if (!socket) co_return failed("ended at once");
  auto link = std::make_shared<isolate::AgentLink>(std::move(*socket));
  auto timed_out = std::make_shared<bool>(false);
  boost::asio::steady_timer patience(services_.executor, trial.time);
  patience.async_wait([link, timed_out](const boost::system::error_code& error) {
    if (error) return;
    *timed_out = true;
    link->close();
  });
  auto frame = co_await link->read();
  if (*timed_out) co_return failed(fmt::format("did not answer within {} s", trial.time.count()));
  if (!frame) co_return failed("ended before it answered");
  auto hello = agent::decode_hello(frame->payload);
  bool good = frame->type == agent::FrameType::kHello && hello && hello->nonce == nonce;
  link->close();
  if (!good) co_return failed("answered with something else");
  co_return Result<void>();
}

}  // namespace atl::sandbox
