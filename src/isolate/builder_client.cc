#include "isolate/builder_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"
#include "base/file.h"
#include "base/lived_time.h"
#include "isolate/event.h"
#include "isolate/peer_watch.h"
#include "linux/unix_socket.h"

namespace atl::isolate {

namespace asio = boost::asio;

namespace {

constexpr size_t kLogPieceBytes = 16 * 1024;
// How long the end of the log may come after the answer: whoever held it has ended.
constexpr std::chrono::seconds kLogEndTime{5};

// The end of the log that is read, shared by its reader and the build.
struct LogReader {
  LogReader(asio::any_io_executor executor, Fd fd) : stream(executor), ended_event(executor) {
    stream.assign(fd.release());
  }
  asio::posix::stream_descriptor stream;
  Event ended_event;
  bool ended = false;
};

Task<void> read_log(std::shared_ptr<LogReader> reader, std::function<void(std::string_view)> log) {
  std::string buffer(kLogPieceBytes, '\0');
  while (true) {
    asio::mutable_buffer room = asio::buffer(buffer);
    auto [error, count] = co_await reader->stream.async_read_some(room, kAsTuple);
    if (error) break;
    log({buffer.data(), count});
  }
  reader->ended = true;
  reader->ended_event.notify_all();
}

// The connection of a build, shared by its reader and the build.
struct ReplyReader {
  explicit ReplyReader(asio::any_io_executor executor) : socket(executor), done_event(executor) {}
  void close() {
    boost::system::error_code ignored;
    socket.close(ignored);
  }
  asio::generic::seq_packet_protocol::socket socket;
  builder::Reply reply = {};
  bool done = false;
  bool whole = false;
  Event done_event;
};

Task<void> read_reply(std::shared_ptr<ReplyReader> reader) {
  asio::mutable_buffer room(&reader->reply, sizeof reader->reply);
  asio::socket_base::message_flags flags = 0;
  auto [error, count] = co_await reader->socket.async_receive(room, flags, kAsTuple);
  reader->done = true;
  reader->whole = !error && count == sizeof reader->reply;
  reader->done_event.notify_all();
}

// To give up a build is to close its connection.
class BuildConnection {
 public:
  explicit BuildConnection(std::shared_ptr<ReplyReader> reader) : reader_(std::move(reader)) {}
  ~BuildConnection() { reader_->close(); }
  BuildConnection(const BuildConnection&) = delete;
  BuildConnection& operator=(const BuildConnection&) = delete;

 private:
  std::shared_ptr<ReplyReader> reader_;
};

// A build may take long; a builder whose loop stands still ends none. False: so it is, or nobody
// waits for the build any more.
Task<bool> wait_for_reply(std::shared_ptr<ReplyReader> reader, PeerWatch& watch) {
  LivedTime lived(2 * kPeerLook);
  while (!reader->done) {
    auto now = std::chrono::steady_clock::now();
    watch.look(lived.look(now));
    if (watch.is_silent()) co_return false;
    auto next = now + kPeerLook;
    bool notified = co_await reader->done_event.wait_until(next);
    bool cancelled = !notified && std::chrono::steady_clock::now() < next;
    if (cancelled && !reader->done) co_return false;
  }
  co_return true;
}

Error unavailable(std::string message) {
  return Error(Code::kUnavailable, std::move(message)).with_reason("builder_unavailable");
}

Result<BuiltImage> to_result(const builder::Reply& reply) {
  if (reply.magic != builder::kMagic || reply.version != builder::kVersion ||
      reply.message_bytes > builder::kMaxMessageBytes)
    return unavailable("the builder's answer is malformed");
  std::string message(reply.message.data(), reply.message_bytes);
  switch (reply.status) {
    case builder::Status::kBuilt:
      return BuiltImage{.image = Digest::from_bytes(reply.image), .image_bytes = reply.image_bytes};
    case builder::Status::kRefused:
      return Error(Code::kInvalid, message).with_reason("build_refused");
    case builder::Status::kFailed:
      return Error(Code::kUnavailable, message).with_reason("build_failed");
    case builder::Status::kBusy:
      break;
  }
  return unavailable(message);
}

Result<Fd> begin(const std::string& run_directory, const BuildOrder& order, int log) {
  ATOLL_TRY(Fd directory, open_file(run_directory, O_PATH | O_DIRECTORY));
  auto socket =
      linux::connect_at(directory.get(), builder::kSocketName, SOCK_SEQPACKET | SOCK_NONBLOCK);
  if (!socket) return unavailable(socket.error().message());
  builder::Request request = {.magic = builder::kMagic,
                              .version = builder::kVersion,
                              .operation = order.operation,
                              .flags = order.flags,
                              .reserved = 0};
  std::array<int, builder::kRequestFds> fds = {order.file, log};
  auto sent = linux::send_message(socket->get(),
                                  {reinterpret_cast<const char*>(&request), sizeof request}, fds);
  if (!sent) return unavailable(sent.error().message());
  return std::move(*socket);
}

}  // namespace

Task<Result<BuiltImage>> BuilderClient::build(BuildOrder order,
                                              std::function<void(std::string_view)> log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) co_return Error::system("pipe");
  Fd log_end(ends[0]), log_start(ends[1]);
  ATOLL_CO_TRY(Fd connected, begin(run_directory_, order, log_start.get()));
  log_start.reset();
  auto reader = std::make_shared<LogReader>(executor_, std::move(log_end));
  // detached: it owns a share of the reader and ends with the log, whose other end the build has
  spawn(executor_, read_log(reader, std::move(log)));
  auto answer = std::make_shared<ReplyReader>(executor_);
  boost::system::error_code failure;
  answer->socket.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), connected.get(), failure);
  if (failure) co_return unavailable("connect to the builder: " + failure.message());
  (void)connected.release();
  BuildConnection connection(answer);
  // detached: it owns a share of the answer and ends with the connection
  spawn(executor_, read_reply(answer));
  PeerWatch watch(run_directory_, "atoll-builder");
  bool answered = co_await wait_for_reply(answer, watch);
  if (!answered) co_return unavailable("the builder does not answer");
  auto deadline = std::chrono::steady_clock::now() + kLogEndTime;
  if (!reader->ended) co_await reader->ended_event.wait_until(deadline);
  if (!answer->whole) co_return unavailable("the builder ended");
  co_return to_result(answer->reply);
}

}  // namespace atl::isolate
