#include "isolate/egress_client.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"
#include "base/file.h"
#include "base/log.h"
#include "linux/unix_socket.h"

namespace atl::isolate {

namespace asio = boost::asio;
using Socket = asio::generic::seq_packet_protocol::socket;

namespace {

constexpr std::chrono::seconds kReplyTime{10};
constexpr std::chrono::milliseconds kDialPause{50};

Error unavailable(const std::string& why) {
  return Error(Code::kUnavailable, "egress: " + why).with_reason("egress_unavailable");
}

// `invalid` is the reason when what was said is not right.
Result<void> to_result(const egress::Reply& reply,
                       std::string_view invalid = "invalid_network_rule") {
  switch (reply.status) {
    case egress::Status::kOk:
      return {};
    case egress::Status::kInvalid:
      return Error(Code::kInvalid, reply.message).with_reason(invalid);
    case egress::Status::kNotFound:
      return Error(Code::kNotFound, reply.message);
    case egress::Status::kConflict:
      return Error(Code::kConflict, reply.message);
    case egress::Status::kFailed:
      break;
  }
  return unavailable(reply.message);
}

}  // namespace

struct EgressClient::Pending {
  explicit Pending(asio::any_io_executor executor) : done(executor) {}
  Event done;
  std::optional<Result<egress::Reply>> reply;
};

struct EgressClient::Link {
  explicit Link(Socket given) : socket(std::move(given)) {}

  void fail_all() {
    broken = true;
    boost::system::error_code ignored;
    socket.close(ignored);
    for (auto& [id, one] : pending) {
      one->reply = Result<egress::Reply>(unavailable("the connection broke"));
      one->done.notify_all();
    }
    pending.clear();
  }

  Socket socket;
  bool broken = false;
  std::map<uint64_t, std::shared_ptr<Pending>> pending;
};

EgressClient::EgressClient(asio::any_io_executor executor, std::string run_directory, Reopen reopen)
    : executor_(executor),
      directory_(std::move(run_directory) + "/egress"),
      reopen_(std::move(reopen)),
      broken_(executor) {}

EgressClient::~EgressClient() {
  if (link_) link_->fail_all();
}

Result<std::shared_ptr<EgressClient::Link>> EgressClient::connect() {
  ATOLL_TRY(Fd directory, open_file(directory_, O_PATH | O_DIRECTORY));
  ATOLL_TRY(Fd fd, linux::connect_at(directory.get(), egress::kSocketName,
                                     SOCK_SEQPACKET | SOCK_NONBLOCK));
  Socket socket(executor_);
  boost::system::error_code error;
  socket.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), fd.get(), error);
  if (error) return unavailable(error.message());
  (void)fd.release();
  return std::make_shared<Link>(std::move(socket));
}

Task<void> EgressClient::read_replies(std::shared_ptr<Link> link) {
  std::string buffer(egress::kMaxMessageBytes, '\0');
  while (!link->broken) {
    asio::mutable_buffer room = asio::buffer(buffer);
    asio::socket_base::message_flags flags = 0;
    auto [error, count] = co_await link->socket.async_receive(room, flags, kAsTuple);
    if (error || count == 0) break;
    auto reply = egress::parse_reply({buffer.data(), count});
    if (!reply) {
      log_error("malformed reply from egress", {reply.error()});
      break;
    }
    auto found = link->pending.find(reply->request_id);
    if (found == link->pending.end()) continue;
    found->second->reply = Result<egress::Reply>(std::move(*reply));
    found->second->done.notify_all();
    link->pending.erase(found);
  }
  link->fail_all();
  broken_.notify_all();
}

Task<Result<egress::Reply>> EgressClient::ask(egress::Request request, Sockets sockets) {
  std::shared_ptr<Link> link = link_;
  if (!link || link->broken) co_return unavailable("it does not run");
  request.request_id = next_request_++;
  auto pending = std::make_shared<Pending>(executor_);
  link->pending.emplace(request.request_id, pending);
  std::string message = egress::encode_request(request);
  std::vector<int> fds;
  for (const Fd& fd : sockets) fds.push_back(fd.get());
  while (true) {
    auto sent = linux::send_message(link->socket.native_handle(), message, fds, MSG_DONTWAIT);
    if (sent) break;
    bool full = sent.error().system_errno() == EAGAIN;
    if (full) {
      auto [error] = co_await link->socket.async_wait(Socket::wait_write, kAsTuple);
      full = !error && !link->broken;
    }
    if (full) continue;
    link->pending.erase(request.request_id);
    co_return unavailable(sent.error().message());
  }
  sockets.clear();
  auto deadline = std::chrono::steady_clock::now() + kReplyTime;
  while (!pending->reply) {
    bool notified = co_await pending->done.wait_until(deadline);
    if (notified || pending->reply) continue;
    link->pending.erase(request.request_id);
    co_return unavailable("it does not answer");
  }
  co_return std::move(*pending->reply);
}

Task<void> EgressClient::open(SandboxId id, Sockets sockets) {
  Told& told = told_[id];
  egress::Request request{.operation = egress::Operation::kOpen, .sandbox = id};
  request.tenant = told.tenant;
  request.policy = told.policy;
  // A failure is made good when egress is there again: until then nothing leaves.
  auto reply = co_await ask(std::move(request), std::move(sockets));
  Result<void> done = reply ? to_result(*reply) : Result<void>(std::move(reply).error());
  if (!done) log_warning("a sandbox has no way out yet", {{"sandbox", id.view()}, done.error()});
}

Task<Result<void>> EgressClient::set_policy(SandboxId id, uint64_t tenant, std::string policy) {
  told_[id] = Told{.tenant = tenant, .policy = policy};
  egress::Request request{.operation = egress::Operation::kPolicy, .sandbox = id};
  request.tenant = tenant;
  request.policy = std::move(policy);
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none)));
  if (reply.status == egress::Status::kNotFound) {
    co_await tell(id);
    co_return Result<void>();
  }
  co_return to_result(reply);
}

Task<void> EgressClient::close(SandboxId id) { return end(id, egress::Operation::kClose); }

Task<void> EgressClient::suspend(SandboxId id) { return end(id, egress::Operation::kSuspend); }

Task<void> EgressClient::end(SandboxId id, egress::Operation operation) {
  told_.erase(id);
  egress::Request request{.operation = operation, .sandbox = id};
  // What does not run holds nothing.
  Sockets none;
  (void)co_await ask(std::move(request), std::move(none));
}

Task<void> EgressClient::forget(SandboxId id) {
  egress::Request request{.operation = egress::Operation::kForget, .sandbox = id};
  Sockets none;
  (void)co_await ask(std::move(request), std::move(none));
}

Task<Result<EgressPage>> EgressClient::read(SandboxId id, uint64_t offset) {
  egress::Request request{.operation = egress::Operation::kRead, .sandbox = id};
  request.offset = offset;
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none)));
  ATOLL_CO_TRY_VOID(to_result(reply));
  EgressPage page{.rows = {}, .next = reply.next_offset};
  size_t start = 0;
  for (size_t end = reply.rows.find('\n'); end != std::string::npos;
       end = reply.rows.find('\n', start)) {
    page.rows.push_back(reply.rows.substr(start, end - start));
    start = end + 1;
  }
  co_return page;
}

Task<Result<std::string>> EgressClient::call(EgressCall call) {
  egress::Request request{.operation = call.operation, .sandbox = call.sandbox};
  request.tenant = call.tenant;
  request.policy = std::move(call.text);
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none)));
  ATOLL_CO_TRY_VOID(to_result(reply, "invalid_field"));
  co_return std::move(reply.rows);
}

// One that egress serves already is only told its policy.
Task<void> EgressClient::tell(SandboxId id) {
  auto found = told_.find(id);
  if (found == told_.end()) co_return;
  egress::Request request{.operation = egress::Operation::kPolicy, .sandbox = id};
  request.tenant = found->second.tenant;
  request.policy = found->second.policy;
  Sockets none;
  auto reply = co_await ask(std::move(request), std::move(none));
  if (!reply || reply->status != egress::Status::kNotFound) co_return;
  auto sockets = co_await reopen_(id);
  if (sockets) {
    co_await open(id, std::move(*sockets));
    co_return;
  }
  log_warning("a sandbox has no way out", {{"sandbox", id.view()}, sockets.error()});
}

Task<void> EgressClient::tell_all() {
  egress::Request retain{.operation = egress::Operation::kRetain};
  std::vector<SandboxId> ids;
  for (const auto& [id, told] : told_) {
    ids.push_back(id);
    retain.retained += id.view();
  }
  if (ids.size() <= egress::kMaxRetained) {
    Sockets none;
    (void)co_await ask(std::move(retain), std::move(none));
  } else {
    log_warning("egress goes on serving sandboxes that are gone", {{"alive", ids.size()}});
  }
  for (const SandboxId& id : ids) co_await tell(id);
}

Task<void> EgressClient::pause() {
  asio::steady_timer timer(executor_, kDialPause);
  co_await timer.async_wait(kAsTuple);
}

Task<void> EgressClient::run() {
  while (true) {
    auto link = connect();
    if (!link) {
      co_await pause();
      continue;
    }
    link_ = *link;
    // detached: owns a share of the link and ends when its socket is closed
    spawn(executor_, read_replies(link_));
    co_await tell_all();
    while (!link_->broken) co_await broken_.wait();
    log_warning("egress is away");
    co_await pause();
  }
}

}  // namespace atl::isolate
