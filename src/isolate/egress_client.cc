#include "isolate/egress_client.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>

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

constexpr std::chrono::seconds kReplyTime{4};
constexpr std::chrono::milliseconds kSilentTime{250};  // for one that did not answer before
constexpr std::chrono::seconds kRetryTime{1};
constexpr std::string_view kNothing = "{}";  // the policy that allows nothing
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
    case egress::Status::kFull:
      return Error(Code::kExhausted, "egress: " + reply.message).with_reason("host_full");
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

  struct Message {
    uint64_t request_id;
    std::string text;
    Sockets sockets;
  };

  // In their order, as far as the socket takes them.
  void send_waiting() {
    while (!outbox.empty()) {
      Message& next = outbox.front();
      std::vector<int> fds;
      for (const Fd& fd : next.sockets) fds.push_back(fd.get());
      auto sent = linux::send_message(socket.native_handle(), next.text, fds, MSG_DONTWAIT);
      if (!sent && sent.error().system_errno() == EAGAIN) return;
      if (!sent) answer(next.request_id, unavailable(sent.error().message()));
      outbox.pop_front();
    }
  }

  bool is_unsent(uint64_t request_id) const {
    auto is_it = [request_id](const Message& one) { return one.request_id == request_id; };
    return std::any_of(outbox.begin(), outbox.end(), is_it);
  }

  void answer(uint64_t request_id, Result<egress::Reply> reply) {
    auto found = pending.find(request_id);
    if (found == pending.end()) return;
    found->second->reply = std::move(reply);
    found->second->done.notify_all();
    pending.erase(found);
  }

  void fail_all() {
    broken = true;
    boost::system::error_code ignored;
    socket.close(ignored);
    for (auto& [id, one] : pending) {
      one->reply = Result<egress::Reply>(unavailable("the connection broke"));
      one->done.notify_all();
    }
    pending.clear();
    outbox.clear();
  }

  Socket socket;
  bool broken = false;
  bool is_sending = false;
  bool is_silent = false;  // something was not answered in time, nor anything since
  std::deque<Message> outbox;
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
    uint64_t request_id = reply->request_id;
    link->is_silent = false;
    link->answer(request_id, std::move(*reply));
  }
  link->fail_all();
  broken_.notify_all();
}

Task<void> EgressClient::send_rest(std::shared_ptr<Link> link) {
  while (!link->broken && !link->outbox.empty()) {
    auto [error] = co_await link->socket.async_wait(Socket::wait_write, kAsTuple);
    if (error) break;
    link->send_waiting();
  }
  link->is_sending = false;
}

Task<Result<egress::Reply>> EgressClient::ask(egress::Request request, Sockets sockets) {
  Deadline deadline = std::chrono::steady_clock::now() + kReplyTime;
  auto reply = co_await ask(std::move(request), std::move(sockets), deadline);
  co_return reply;
}

Task<Result<egress::Reply>> EgressClient::ask(egress::Request request, Sockets sockets,
                                              Deadline deadline) {
  std::shared_ptr<Link> link = link_;
  if (!link || link->broken) co_return unavailable("it does not run");
  auto now = std::chrono::steady_clock::now();
  if (link->is_silent) deadline = std::min(deadline, now + kSilentTime);
  uint64_t id = next_request_++;
  request.request_id = id;
  auto pending = std::make_shared<Pending>(executor_);
  link->pending.emplace(id, pending);
  link->outbox.push_back({id, egress::encode_request(request), std::move(sockets)});
  if (!link->is_sending) link->send_waiting();
  if (!link->outbox.empty() && !link->is_sending) {
    link->is_sending = true;
    // detached: owns a share of the link and ends when its socket is closed
    spawn(executor_, send_rest(link));
  }
  while (!pending->reply) {
    bool notified = co_await pending->done.wait_until(deadline);
    if (notified || pending->reply) continue;
    link->pending.erase(id);
    bool is_late = std::chrono::steady_clock::now() >= deadline;
    link->is_silent = link->is_silent || is_late;
    // What was sent comes before all else when egress goes on. What was not comes too late: it is
    // told by a new connection, which comes first as a whole.
    if (is_late && link->is_unsent(id)) {
      link->fail_all();
      (void)link_up();
      broken_.notify_all();
    }
    co_return unavailable("it does not answer");
  }
  co_return std::move(*pending->reply);
}

Task<Result<egress::Health>> EgressClient::check(Deadline deadline) {
  egress::Request request{.operation = egress::kShowHealth};
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none), deadline));
  ATOLL_CO_TRY_VOID(to_result(reply));
  co_return egress::parse_health(reply.rows);
}

Task<Result<void>> EgressClient::check_room() {
  if (!link_ || link_->broken) co_return Result<void>();
  egress::Request request{.operation = egress::Operation::kRoom};
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none)));
  co_return to_result(reply);
}

Task<Result<void>> EgressClient::open(SandboxId id, Sockets sockets) {
  // Nothing that egress still has of it has a network with a program in it.
  Told fresh{.allows_nothing = true};
  told_.insert_or_assign(id, std::move(fresh));
  auto done = co_await serve(id, std::move(sockets));
  if (done) co_return done;
  if (done.error().code() == Code::kExhausted) {
    told_.erase(id);
    co_return done;
  }
  // Nothing leaves until egress is told.
  log_warning("a sandbox has no way out yet", {{"sandbox", id.view()}, done.error()});
  if (auto told = told_.find(id); told != told_.end()) told->second.is_untold = true;
  co_return Result<void>();
}

Task<Result<void>> EgressClient::serve(SandboxId id, Sockets sockets) {
  auto told = told_.find(id);
  if (told == told_.end()) co_return unavailable("the sandbox is gone");
  egress::Request request{.operation = egress::Operation::kOpen, .sandbox = id};
  request.tenant = told->second.tenant;
  request.policy = told->second.policy;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(sockets)));
  co_return to_result(reply);
}

Task<Result<void>> EgressClient::set_policy(SandboxId id, uint64_t tenant, std::string policy) {
  Told& told = told_[id];
  bool denies_all = policy == kNothing;
  bool is_needed = !denies_all || !told.allows_nothing;
  uint64_t change = ++told.changes;
  told.tenant = tenant;
  told.policy = std::move(policy);
  told.allows_nothing = told.allows_nothing && denies_all;
  // What a former atolld told may go on until run() says otherwise.
  told.is_untold = told.is_doubtful = has_begun_;
  auto done = co_await tell(id);
  auto now = told_.find(id);
  if (done && now != told_.end() && now->second.changes == change) {
    now->second.is_untold = now->second.is_doubtful = false;
    now->second.allows_nothing = denies_all;
  }
  if (done || is_needed) co_return done;
  log_warning("egress was not told", {{"sandbox", id.view()}, done.error()});
  co_return Result<void>();
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
Task<Result<void>> EgressClient::tell(SandboxId id) {
  auto told = told_.find(id);
  if (told == told_.end()) co_return unavailable("the sandbox is gone");
  egress::Request request{.operation = egress::Operation::kPolicy, .sandbox = id};
  request.tenant = told->second.tenant;
  request.policy = told->second.policy;
  Sockets none;
  ATOLL_CO_TRY(egress::Reply reply, co_await ask(std::move(request), std::move(none)));
  if (reply.status != egress::Status::kNotFound) co_return to_result(reply);
  Result<void> served = co_await check_room();
  if (served) {
    auto sockets = co_await reopen_(id);
    if (!sockets) co_return unavailable("no sockets: " + sockets.error().message());
    served = co_await serve(id, std::move(*sockets));
  }
  // To the one who changes a policy it is the same why egress cannot.
  if (!served && served.error().code() == Code::kExhausted)
    co_return unavailable(served.error().message());
  co_return served;
}

Task<void> EgressClient::tell_all() {
  egress::Request retain{.operation = egress::Operation::kRetain};
  std::vector<SandboxId> ids;
  for (auto& [id, told] : told_) {
    ids.push_back(id);
    retain.retained += id.view();
    told.is_untold = true;
  }
  if (ids.size() <= egress::kMaxRetained) {
    Sockets none;
    (void)co_await ask(std::move(retain), std::move(none));
  } else {
    log_warning("egress goes on serving sandboxes that are gone", {{"alive", ids.size()}});
  }
  co_await tell_untold();
}

Task<void> EgressClient::tell_untold() {
  std::map<SandboxId, uint64_t> untold;
  for (const auto& [id, told] : told_)
    if (told.is_untold) untold.emplace(id, told.changes);
  for (const auto& [id, changes] : untold) {
    // One that is silent has heard it, and says so when it goes on.
    if (link_->broken || link_->is_silent) co_return;
    auto done = co_await tell(id);
    auto told = told_.find(id);
    if (told == told_.end() || told->second.changes != changes) continue;
    if (done) told->second.is_untold = told->second.is_doubtful = false;
    if (!done && !told->second.has_failed)
      log_warning("a sandbox has no way out", {{"sandbox", id.view()}, done.error()});
    told->second.has_failed = !done;
  }
}

Task<void> EgressClient::pause() {
  asio::steady_timer timer(executor_, kDialPause);
  co_await timer.async_wait(kAsTuple);
}

// What it says first is to let nothing pass of those that egress may hold to an older policy: of
// all of them at once.
bool EgressClient::link_up() {
  auto link = connect();
  if (!link) return false;
  link_ = *link;
  // detached: owns a share of the link and ends when its socket is closed
  spawn(executor_, read_replies(link_));
  egress::Request deny{.operation = egress::Operation::kDeny, .request_id = next_request_++};
  size_t count = 0;
  for (const auto& [id, told] : told_) {
    if (!told.is_doubtful || count == egress::kMaxRetained) continue;
    deny.retained += id.view();
    ++count;
  }
  // Its answer is nobody's.
  if (count > 0) link_->outbox.push_back({deny.request_id, egress::encode_request(deny), {}});
  link_->send_waiting();
  return true;
}

Task<void> EgressClient::run() {
  has_begun_ = true;
  while (true) {
    bool is_up = (link_ && !link_->broken) || link_up();
    if (!is_up) {
      co_await pause();
      continue;
    }
    std::shared_ptr<Link> link = link_;
    co_await tell_all();
    while (link == link_ && !link->broken) {
      (void)co_await broken_.wait_until(std::chrono::steady_clock::now() + kRetryTime);
      co_await tell_untold();
    }
    log_warning("egress is away");
    if (link_->broken) co_await pause();
  }
}

}  // namespace atl::isolate
