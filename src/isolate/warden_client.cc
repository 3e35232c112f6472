#include "isolate/warden_client.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <boost/asio/buffer.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"
#include "base/file.h"
#include "base/log.h"
#include "linux/unix_socket.h"

namespace atl::isolate {

namespace asio = boost::asio;
using Socket = asio::generic::seq_packet_protocol::socket;

// What a helper of the warden takes at most: a launch includes moving a process into v1 groups and,
// the first time, making the layer pool.
constexpr std::chrono::seconds kReplyTime{60};

namespace {

Error silent() {
  return Error(Code::kUnavailable, "the warden does not answer").with_reason("warden_unavailable");
}

}  // namespace

struct WardenClient::Pending {
  explicit Pending(asio::any_io_executor executor) : done(executor) {}
  Event done;
  std::optional<Result<Answer>> answer;
};

struct WardenClient::Link {
  explicit Link(Socket given) : socket(std::move(given)) {}

  void complete(uint64_t request_id, Result<Answer> answer) {
    auto found = pending.find(request_id);
    if (found == pending.end()) return;  // its asker gave up waiting
    found->second->answer = std::move(answer);
    found->second->done.notify_all();
    pending.erase(found);
  }
  void fail_all(const Error& error) {
    broken = true;
    boost::system::error_code ignored;
    socket.close(ignored);
    while (!pending.empty()) complete(pending.begin()->first, error);
  }

  Socket socket;
  bool broken = false;
  std::map<uint64_t, std::shared_ptr<Pending>> pending;
};

WardenClient::WardenClient(asio::any_io_executor executor, std::string run_directory,
                           const PeerWatch& watch)
    : executor_(std::move(executor)), run_directory_(std::move(run_directory)), watch_(watch) {}

WardenClient::~WardenClient() { close(); }

void WardenClient::close() {
  if (link_) link_->fail_all(Error(Code::kCancelled, "connection to the warden is closed"));
  link_.reset();
}

Result<Fd> WardenClient::connect_to_warden() const {
  ATOLL_TRY(Fd directory, open_file(run_directory_, O_PATH | O_DIRECTORY));
  // On AF_UNIX, connect() is immediate unless the backlog is full, which is an error here too.
  return linux::connect_at(directory.get(), "warden.sock", SOCK_SEQPACKET | SOCK_NONBLOCK);
}

Result<std::shared_ptr<WardenClient::Link>> WardenClient::ensure_link() {
  if (watch_.is_silent()) return silent();
  if (link_ && !link_->broken) return link_;
  auto fd = connect_to_warden();
  if (!fd) return Error(Code::kUnavailable, fd.error().message()).with_reason("warden_unavailable");
  Socket connected(executor_);
  boost::system::error_code error;
  connected.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), fd->get(), error);
  if (error) return Error(Code::kUnavailable, "connect to the warden: " + error.message());
  (void)fd->release();
  link_ = std::make_shared<Link>(std::move(connected));
  // detached: the task owns a share of the link and ends when its socket is closed
  spawn(executor_, read_replies(link_));
  return link_;
}

Task<void> WardenClient::read_replies(std::shared_ptr<Link> link) {
  std::string message(warden::kMaxReplyBytes + 1, '\0');
  while (!link->broken) {
    auto [error] = co_await link->socket.async_wait(Socket::wait_read, kAsTuple);
    if (link->broken) break;
    std::array<Fd, warden::kReplySockets> received;
    auto got =
        linux::receive_message(link->socket.native_handle(), message, received, MSG_DONTWAIT);
    if (!error && !got && got.error().system_errno() == EAGAIN) continue;
    if (error || !got || got->bytes == 0) {
      link->fail_all(Error(Code::kUnavailable, "the warden closed the connection")
                         .with_reason("warden_unavailable"));
      break;
    }
    auto parsed =
        warden::parse_reply({reinterpret_cast<const unsigned char*>(message.data()), got->bytes});
    if (!parsed && parsed.error().code() == Code::kUnsupported) {
      link->fail_all(Error(Code::kUnavailable, "the warden is of another release than atolld: " +
                                                   parsed.error().message())
                         .with_reason("warden_unavailable"));
      break;
    }
    if (!parsed) {
      log_error("malformed reply from the warden", {parsed.error()});
      link->fail_all(Error(Code::kCorrupt, parsed.error().message()));
      break;
    }
    Answer answer{
        parsed->reply, {}, {}, {}, std::string(parsed->receipt.begin(), parsed->receipt.end()), {}};
    for (size_t i = 0; i < got->fds; ++i) answer.sockets.push_back(std::move(received[i]));
    for (size_t i = 0; i < parsed->reply.id_count; ++i) {
      auto text = parsed->ids.subspan(i * SandboxId::kLength, SandboxId::kLength);
      std::string_view name(reinterpret_cast<const char*>(text.data()), text.size());
      if (auto id = SandboxId::parse(name)) answer.ids.push_back(*id);
      if (auto id = SnapshotId::parse(name)) answer.snapshots.push_back(*id);
      if (auto id = VolumeId::parse(name)) answer.volumes.push_back(*id);
    }
    link->complete(answer.reply.request_id, std::move(answer));
  }
}

Task<Result<void>> WardenClient::send(std::shared_ptr<Link> link, std::string message) {
  asio::const_buffer bytes(message.data(), message.size());
  asio::socket_base::message_flags flags = MSG_NOSIGNAL;
  auto [error, count] = co_await link->socket.async_send(bytes, flags, kAsTuple);
  if (!error && count == message.size()) co_return Result<void>();
  auto failure = Error(Code::kUnavailable, "send to the warden: " + error.message())
                     .with_reason("warden_unavailable");
  link->fail_all(failure);
  co_return failure;
}

void WardenClient::stamp(warden::Request& request) {
  request.magic = warden::kMagic;
  request.version = warden::spoken_version();
  request.request_id = next_request_id_++;
}

Task<Result<WardenClient::Answer>> WardenClient::ask(warden::Request request) {
  stamp(request);
  std::string message(reinterpret_cast<const char*>(&request), sizeof request);
  auto answer = co_await ask_bytes(request.request_id, std::move(message));
  co_return answer;
}

Task<Result<WardenClient::Answer>> WardenClient::ask(warden::Message message) {
  stamp(message.request);
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
  auto answer = co_await ask_bytes(message.request.request_id, std::move(bytes));
  co_return answer;
}

Task<Result<WardenClient::Answer>> WardenClient::ask_bytes(uint64_t request_id,
                                                           std::string message) {
  ATOLL_CO_TRY(std::shared_ptr<Link> link, ensure_link());
  auto pending = std::make_shared<Pending>(executor_);
  link->pending.emplace(request_id, pending);
  auto sent = co_await send(link, std::move(message));
  if (!sent) co_return std::move(sent).error();
  auto deadline = std::chrono::steady_clock::now() + kReplyTime;
  while (!pending->answer) {
    auto now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      link->pending.erase(request_id);
      co_return Error(Code::kTimeout, "the warden did not carry it out in time")
          .with_reason("warden_unavailable");
    }
    // Not only this one: what it has been sent, it must not begin later.
    if (watch_.is_silent()) link->fail_all(silent());
    if (pending->answer) break;
    auto next = std::min(deadline, now + kPeerLook);
    bool notified = co_await pending->done.wait_until(next);
    bool cancelled = !notified && std::chrono::steady_clock::now() < next;
    if (!cancelled || pending->answer) continue;
    link->pending.erase(request_id);
    co_return Error(Code::kCancelled, "nobody waits for the warden any more")
        .with_reason("warden_unavailable");
  }
  co_return std::move(*pending->answer);
}

}  // namespace atl::isolate
