#include "isolate/egress_calls.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/file.h"
#include "isolate/driver.h"
#include "linux/unix_socket.h"

namespace atl::isolate {

namespace asio = boost::asio;
using Socket = asio::generic::seq_packet_protocol::socket;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

namespace {

constexpr std::chrono::seconds kReplyTime{10};

Error unavailable(const std::string& why) {
  return Error(Code::kUnavailable, "egress: " + why).with_reason("egress_unavailable");
}

Result<void> connect(Socket& socket, const std::string& path) {
  ATOLL_TRY(Fd directory, open_file(path, O_PATH | O_DIRECTORY));
  ATOLL_TRY(Fd fd, linux::connect_at(directory.get(), egress::kSocketName,
                                     SOCK_SEQPACKET | SOCK_NONBLOCK));
  boost::system::error_code error;
  socket.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), fd.get(), error);
  if (error) return unavailable(error.message());
  (void)fd.release();
  return {};
}

Result<std::string> to_text(egress::Reply reply) {
  switch (reply.status) {
    case egress::Status::kOk:
      return std::move(reply.rows);
    case egress::Status::kInvalid:
      return Error(Code::kInvalid, reply.message).with_reason("invalid_field");
    case egress::Status::kNotFound:
      return Error(Code::kNotFound, reply.message);
    case egress::Status::kFailed:
      break;
  }
  return unavailable(reply.message);
}

}  // namespace

Task<Result<std::string>> call_egress(Driver& driver, EgressCall call) {
  auto* calls = dynamic_cast<EgressCalls*>(&driver);
  if (calls == nullptr)
    co_return Error(Code::kUnsupported, "the driver has no egress").with_reason("no_egress");
  auto answer = co_await calls->call_egress(std::move(call));
  co_return answer;
}

Task<Result<std::string>> call_egress(asio::any_io_executor executor, std::string directory,
                                      EgressCall call) {
  Socket socket(executor);
  auto connected = connect(socket, directory);
  if (!connected) co_return unavailable(connected.error().message());
  egress::Request request{.operation = call.operation, .request_id = 1, .sandbox = call.sandbox};
  request.tenant = call.tenant;
  request.policy = std::move(call.text);
  std::string message = egress::encode_request(request);
  auto sent = linux::send_message(socket.native_handle(), message, {}, MSG_DONTWAIT);
  if (!sent) co_return unavailable(sent.error().message());
  asio::steady_timer timer(executor, kReplyTime);
  timer.async_wait([&socket](boost::system::error_code error) {
    boost::system::error_code ignored;
    if (!error) socket.close(ignored);
  });
  std::string buffer(egress::kMaxMessageBytes, '\0');
  asio::mutable_buffer room = asio::buffer(buffer);
  asio::socket_base::message_flags flags = 0;
  auto [error, count] = co_await socket.async_receive(room, flags, kToken);
  timer.cancel();
  if (error || count == 0) co_return unavailable("it does not answer");
  ATOLL_CO_TRY(egress::Reply reply, egress::parse_reply({buffer.data(), count}));
  co_return to_text(std::move(reply));
}

}  // namespace atl::isolate
