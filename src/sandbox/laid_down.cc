#include "sandbox/laid_down.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/channel_protocol.h"
#include "agent/still_files.h"
#include "linux/unix_socket.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kPatience{90};
constexpr uint32_t kChannel = 3;
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Task<Result<void>> lay_down(Services& services, SandboxId id,
                            std::shared_ptr<isolate::AgentLink> link) {
  boost::asio::steady_timer patience(services.executor, kPatience);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  agent::OpenControl open{agent::kLaidDown, std::nullopt};
  link->send(agent::encode(kChannel, open));
  // Its keeper ends the stream when it begins with it.
  while (true) {
    auto frame = co_await link->read();
    if (!frame) break;
    if (frame->type != agent::FrameType::kChannelClose) continue;
    ATOLL_CO_TRY(agent::ChannelClose close, agent::decode_channel_close(frame->payload));
    if (close.system_errno != 0)
      co_return Error::from_errno("lay a machine down", close.system_errno);
  }
  link->close();
  auto memory = co_await borrow_memory(services, id);
  if (!memory) co_return std::move(memory).error();
  co_return Result<void>();
}

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

}  // namespace atl::sandbox
