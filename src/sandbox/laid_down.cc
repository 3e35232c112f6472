#include "sandbox/laid_down.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/channel_protocol.h"
#include "agent/still_files.h"
#include "base/log.h"
#include "linux/unix_socket.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kPatience{90};
constexpr uint32_t kChannel = 3;
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::chrono::hours kLongestUse{1};
constexpr uint64_t kMostBegun = 10'000;
constexpr uint64_t kBlockBytes = 512;  // of st_blocks

// Until its keeper ends the stream, which it does when it begins with it.
Task<Result<void>> ask(Services& services, std::shared_ptr<isolate::AgentLink> link) {
  boost::asio::steady_timer patience(services.executor, kPatience);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  agent::OpenControl open{agent::kLaidDown, std::nullopt};
  link->send(agent::encode(kChannel, open));
  while (true) {
    auto frame = co_await link->read();
    if (!frame) break;
    if (frame->type != agent::FrameType::kChannelClose) continue;
    ATOLL_CO_TRY(agent::ChannelClose close, agent::decode_channel_close(frame->payload));
    if (close.system_errno != 0)
      co_return Error::from_errno("lay a machine down", close.system_errno);
  }
  link->close();
  co_return Result<void>();
}

// What its keeper gives to whoever connects.
Task<Result<Fd>> borrow_memory(Services& services, SandboxId id) {
  auto connected = co_await services.driver.connect_agent(id);
  if (!connected) co_return std::move(connected).error();
  auto socket = std::make_shared<isolate::AgentSocket>(std::move(*connected));
  boost::asio::steady_timer patience(services.executor, kPatience);
  patience.async_wait([socket](const boost::system::error_code& error) {
    boost::system::error_code ignored;
    if (!error) socket->close(ignored);
  });
  auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
  auto [error] = co_await socket->async_wait(isolate::AgentSocket::wait_read, token);
  if (error) co_return Error(Code::kUnavailable, "borrow memory: " + error.message());
  char byte = 0;
  Fd memory;
  std::span<char> room(&byte, 1);
  std::span<Fd> fds(&memory, 1);
  auto received = linux::receive_message(socket->native_handle(), room, fds, MSG_DONTWAIT);
  if (!received) co_return std::move(received).error();
  bool sealed = memory && (fcntl(memory.get(), F_GET_SEALS) & kSeals) == kSeals;
  if (byte != agent::kLayDownNote || !sealed)
    co_return Error(Code::kCorrupt, "borrow memory: it is none, or can be changed");
  co_return memory;
}

Task<void> remove(Services& services, SandboxId id) {
  auto removed = co_await services.driver.remove(id);
  // The next start removes it, or the sweep: nobody is in it.
  if (!removed) log_warning("an isolate stays", {{"sandbox", id.view()}, removed.error()});
}

}  // namespace

bool LaidDown::lends_to(const Basis& basis, const isolate::WallLimits& limits) const {
  return isolate.basis == basis && isolate.limits == limits;
}

bool LaidDown::is_worn(SteadyTime now) const {
  return now - made_at > kLongestUse || begun >= kMostBegun;
}

uint64_t LaidDown::memory_bytes() const {
  struct stat status = {};
  if (fstat(memory.get(), &status) != 0) return isolate.limits.memory_bytes;
  return static_cast<uint64_t>(status.st_blocks) * kBlockBytes;
}

Task<Result<LaidDown>> lay_down(Services& services, WarmIsolate isolate) {
  if (!isolate.agent.waiting)
    co_return Error(Code::kUnsupported, "the agent starts no program that waits");
  std::shared_ptr<isolate::AgentLink> link = std::move(isolate.agent.link);
  ATOLL_CO_TRY_VOID(co_await ask(services, link));
  ATOLL_CO_TRY(Fd memory, co_await borrow_memory(services, isolate.id));
  SnapshotId disk = SnapshotId::draw();
  auto cut = co_await services.driver.cut(isolate.id, disk, 0);
  if (!cut) co_return std::move(cut).error();
  co_return LaidDown{std::move(isolate), std::move(memory), disk, services.clock.steady_now()};
}

Task<Result<WarmAgent>> begin_with(Services& services, std::shared_ptr<LaidDown> lender,
                                   isolate::LaunchSpec spec, CopyOf::Rehearsal rehearsal) {
  SandboxId id = spec.id;
  isolate::Nonce nonce = spec.nonce;
  spec.snapshot = lender->disk;
  ++lender->begun;
  ATOLL_CO_TRY_VOID(co_await services.driver.launch(std::move(spec)));
  CopyOf of{nullptr, rehearsal, lender->memory.get(), lender->isolate.agent.waiting};
  std::optional<agent::Start> none;
  auto agent = co_await warm_agent(services, id, nonce, none, of);
  if (!agent) co_await remove(services, id);
  co_return agent;
}

Task<Result<WarmIsolate>> poise(Services& services, std::shared_ptr<LaidDown> lender,
                                WarmIsolate isolate) {
  isolate::LaunchSpec spec{isolate.id, isolate.basis.image, isolate.limits, isolate.nonce,
                           isolate.basis.toolbox};
  spec.monitor = isolate.basis.monitor;
  spec.snapshot = lender->disk;
  ++lender->begun;
  ATOLL_CO_TRY_VOID(co_await services.driver.launch(std::move(spec)));
  Result<void> lent;
  auto socket = co_await services.driver.connect_agent(isolate.id);
  if (socket) {
    isolate.agent.link = std::make_shared<isolate::AgentLink>(std::move(*socket));
    lent = co_await lend(*isolate.agent.link, lender->memory.get());
  } else {
    lent = std::move(socket).error();
  }
  isolate.lender = std::move(lender);
  if (lent) co_return isolate;
  co_await remove(services, isolate.id);
  co_return std::move(lent).error();
}

Task<Result<WarmAgent>> begin_poised(Services& services, WarmIsolate& isolate) {
  std::shared_ptr<LaidDown> lender = std::exchange(isolate.lender, nullptr);
  std::shared_ptr<isolate::AgentLink> link = isolate.agent.link;
  boost::asio::steady_timer patience(services.executor, kPatience);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  CopyOf of{nullptr, CopyOf::Rehearsal::kNone, -1, lender->isolate.agent.waiting};
  std::optional<agent::Start> none;
  co_return co_await warm_agent(link, isolate.nonce, none, of);
}

Task<void> discard(Services& services, std::shared_ptr<LaidDown> laid_down) {
  auto forgotten = co_await services.driver.remove_snapshot(laid_down->disk);
  if (!forgotten) log_warning("the disk of a machine is left", {forgotten.error()});
  co_await remove(services, laid_down->isolate.id);
}

}  // namespace atl::sandbox
