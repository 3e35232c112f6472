#include "sandbox/hardware_trial.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.h"

namespace atl::sandbox {

namespace {

using isolate::Virtualization;

constexpr std::chrono::seconds kRest{2};
// When nothing could be launched at all, which says nothing about the processor.
constexpr std::chrono::seconds kFailurePause{60};
constexpr isolate::WallLimits kLimits{
    .cpu_millis = 1000, .memory_bytes = 64ull << 20, .pids = 32, .disk_bytes = 32ull << 20};
constexpr std::string_view kNoDevice = "hardware_virtualization_unavailable";

// Of a machine that was launched, and of a host that refuses to.
bool is_final(const Result<void>& booted) {
  return booted || booted.error().code() != Code::kUnavailable;
}

}  // namespace

Task<void> HardwareTrial::run() {
  boost::asio::steady_timer pause(services_.executor);
  auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
  while (true) {
    co_await try_newest();
    pause.expires_after(kRest);
    co_await pause.async_wait(token);
  }
}

Task<void> HardwareTrial::try_newest() {
  std::optional<Digest> image = templates_.offered().machine;
  bool known = templates_.hardware() && templates_.hardware()->image == image;
  if (!image || known || services_.clock.steady_now() < not_before_) co_return;
  Result<void> booted = Error(Code::kUnsupported, "KVM is switched off");
  if (time_.count() > 0) booted = co_await boot(*image);
  find(*image, booted);
}

void HardwareTrial::find(Digest image, const Result<void>& booted) {
  std::string reason = booted ? "" : std::string(booted.error().message());
  if (!is_final(booted)) {
    not_before_ = services_.clock.steady_now() + kFailurePause;
    log_warning("a machine with KVM could not be tried", {booted.error()});
    return;
  }
  log_info(booted ? "machines have the host's processor" : "machines are emulated",
           {{"reason", reason}});
  auto virtualization = booted ? Virtualization::kHardware : Virtualization::kEmulated;
  templates_.set_hardware({image, virtualization, reason});
}

// Its disk is the image of what runs it: the agent needs nothing of it.
Task<Result<void>> HardwareTrial::boot(Digest image) {
  isolate::LaunchSpec spec{SandboxId::draw(), image, kLimits, {}};
  fill_random(spec.nonce);
  spec.monitor =
      isolate::Monitor{image, isolate::Monitor::Kind::kMachine, Virtualization::kHardware};
  auto launched = co_await services_.driver.launch(spec);
  if (!launched && launched.error().reason() == kNoDevice)
    co_return Error(Code::kUnsupported, "this host has no /dev/kvm");
  if (!launched) co_return Error(Code::kUnavailable, launched.error().message());
  auto answered = co_await await_agent(spec.id, spec.nonce);
  auto removed = co_await services_.driver.remove(spec.id);
  // The next start removes it: no row knows it.
  if (!removed) log_warning("a machine that was tried stays", {removed.error()});
  co_return answered;
}

Task<Result<void>> HardwareTrial::await_agent(SandboxId id, isolate::Nonce nonce) {
  auto socket = co_await services_.driver.connect_agent(id);
  if (!socket) co_return Error(Code::kUnsupported, "a machine with KVM ended at once");
  auto link = std::make_shared<isolate::AgentLink>(std::move(*socket));
  auto timed_out = std::make_shared<bool>(false);
  boost::asio::steady_timer patience(services_.executor, time_);
  patience.async_wait([link, timed_out](const boost::system::error_code& error) {
    if (error) return;
    *timed_out = true;
    link->close();
  });
  auto frame = co_await link->read();
  if (*timed_out)
    co_return Error(Code::kUnsupported,
                    fmt::format("a machine with KVM did not answer within {} s", time_.count()));
  if (!frame) co_return Error(Code::kUnsupported, "a machine with KVM ended before it answered");
  auto hello = agent::decode_hello(frame->payload);
  bool good = frame->type == agent::FrameType::kHello && hello && hello->nonce == nonce;
  link->close();
  if (!good) co_return Error(Code::kUnsupported, "a machine with KVM answered with something else");
  co_return Result<void>();
}

}  // namespace atl::sandbox
