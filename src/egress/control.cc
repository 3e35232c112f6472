#include "egress/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include <boost/asio/steady_timer.hpp>
#include <boost/json/serialize.hpp>

#include "async/spawn.h"
#include "base/log.h"
#include "egress/policy_json.h"
#include "egress/put_secret.h"
#include "egress/text_call.h"
#include "linux/unix_socket.h"

namespace atl::egress {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

namespace {

constexpr unsigned kClosesPerSweep = 256;
constexpr uint64_t kLogBudgetBytes = 1ull << 30;
constexpr std::chrono::milliseconds kAcceptPause{5};
constexpr std::chrono::seconds kIdleSweep{5};

Status to_status(Code code) {
  if (code == Code::kInvalid) return Status::kInvalid;
  if (code == Code::kConflict) return Status::kConflict;
  if (code == Code::kExhausted) return Status::kFull;
  return code == Code::kNotFound ? Status::kNotFound : Status::kFailed;
}

Result<std::set<SandboxId>> parse_ids(std::string_view text) {
  std::set<SandboxId> ids;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), SandboxId::kLength))) {
    auto id = SandboxId::parse(text.substr(0, SandboxId::kLength));
    if (!id) return Error(Code::kInvalid, "bad sandbox id");
    ids.insert(*id);
  }
  return ids;
}

}  // namespace

Control::Control(const Surroundings& surroundings, Fd listener, uid_t client_uid)
    : surroundings_(surroundings),
      listener_(surroundings.executor, listener.release()),
      client_uid_(client_uid),
      buffer_(kMaxMessageBytes, '\0') {}

struct Control::Client {
  Client(asio::any_io_executor executor, Fd fd) : socket(executor, fd.release()) {}
  Descriptor socket;
  std::string reply;  // that did not fit
};

Task<void> Control::run() {
  surroundings_.changes.set_source([this] { apply_pending(); });
  asio::steady_timer pause(surroundings_.executor);
  while (true) {
    auto [error] = co_await listener_.async_wait(Descriptor::wait_read, kToken);
    if (error) co_return;
    apply_pending();
    // What cannot be accepted stays there to be read.
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kToken);
  }
}

void Control::apply_pending() {
  if (applies_) return;
  pollfd waiting[2] = {{.fd = listener_.native_handle(), .events = POLLIN, .revents = 0},
                       {.fd = -1, .events = POLLIN, .revents = 0}};
  if (client_) waiting[1].fd = client_->socket.native_handle();
  if (poll(waiting, std::size(waiting), 0) <= 0) return;
  applies_ = true;
  while (waiting[0].revents != 0 && accept_client()) {
  }
  while (client_ && take_request(*client_)) {
  }
  applies_ = false;
}

// False: nobody waits any more.
bool Control::accept_client() {
  Fd accepted(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted) return errno == ECONNABORTED || errno == EINTR;
  auto peer = linux::peer_credentials(accepted.get());
  if (!peer || peer->uid != client_uid_) {
    log_warning("refused a connection", {{"uid", peer ? static_cast<int64_t>(peer->uid) : -1}});
    return true;
  }
  close_client();
  client_ = std::make_shared<Client>(surroundings_.executor, std::move(accepted));
  // detached: owns a share of its connection and ends when that is closed
  spawn(surroundings_.executor, serve(client_));
  return true;
}

void Control::close_client() {
  boost::system::error_code ignored;
  if (client_) client_->socket.close(ignored);
  client_.reset();
}

Task<void> Control::serve(std::shared_ptr<Client> client) {
  while (client == client_) {
    auto kind = client->reply.empty() ? Descriptor::wait_read : Descriptor::wait_write;
    auto [error] = co_await client->socket.async_wait(kind, kToken);
    if (error || client != client_) co_return;
    if (send_reply(*client)) apply_pending();
  }
}

bool Control::send_reply(Client& client) {
  if (client.reply.empty()) return true;
  ssize_t sent = send(client.socket.native_handle(), client.reply.data(), client.reply.size(),
                      MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno == EAGAIN) return false;
  client.reply.clear();
  if (sent >= 0) return true;
  close_client();
  return false;
}

bool Control::take_request(Client& client) {
  if (!client.reply.empty()) return false;
  std::array<Fd, linux::kNetworkSockets> received;
  auto got = linux::receive_message(client.socket.native_handle(), buffer_, received, MSG_DONTWAIT);
  if (!got && got.error().system_errno() == EAGAIN) return false;
  if (!got || got->bytes == 0) {
    close_client();
    return false;
  }
  auto request = parse_request({buffer_.data(), got->bytes});
  if (!request) {
    // Perhaps it took something away. Who sent it connects again, and tells everything.
    log_error("closed a connection, and all networks", {request.error()});
    for (auto& [id, gate] : gates_) gate->deny();
    close_client();
    return false;
  }
  std::vector<Fd> fds;
  // Without descriptors they cannot be taken: that is answered, as any other reason is.
  for (size_t i = 0; got->whole && i < got->fds; ++i) fds.push_back(std::move(received[i]));
  client.reply = encode_reply(answer(*request, std::move(fds)));
  return send_reply(client);
}

Task<void> Control::end_idle() {
  asio::steady_timer timer(surroundings_.executor);
  SystemClock clock;
  while (true) {
    timer.expires_after(kIdleSweep);
    auto [error] = co_await timer.async_wait(kToken);
    if (error) co_return;
    for (auto& [id, gate] : gates_)
      idle_ended_ += gate->connections().end_idle(clock.steady_now(), gate->tenant());
  }
}

Reply Control::answer(const Request& request, std::vector<Fd> fds) {
  Reply reply{.request_id = request.request_id};
  Result<void> done;
  switch (request.operation) {
    case Operation::kOpen:
      done = open(request, std::move(fds));
      break;
    case Operation::kPolicy:
      done = change(request);
      break;
    case Operation::kClose:
      close(*request.sandbox);
      break;
    case Operation::kSuspend:
      suspend(*request.sandbox);
      break;
    case Operation::kRetain:
      done = retain(request);
      break;
    case Operation::kDeny:
      done = deny(request);
      break;
    case Operation::kRoom:
      done = check_room();
      break;
    case Operation::kRead:
      done = read(request, reply);
      break;
    case Operation::kForget:
      close(*request.sandbox);
      done = AuditFile::remove(surroundings_.directory, *request.sandbox);
      break;
    default:
      done = answer_text(request, reply);
      break;
  }
  if (done) return reply;
  log_warning("request failed",
              {{"operation", static_cast<uint16_t>(request.operation)}, done.error()});
  reply.status = to_status(done.error().code());
  reply.message = done.error().message();
  return reply;
}

// Whatever becomes of it, what served the sandbox before does not go on.
Result<void> Control::open(const Request& request, std::vector<Fd> fds) {
  suspend(*request.sandbox);
  ATOLL_TRY_VOID(check_room());
  auto is_kept = [this](const Fd& fd) {
    return !surroundings_.descriptors.is_for_sandboxes(fd.get());
  };
  if (fds.size() != linux::kNetworkSockets || std::any_of(fds.begin(), fds.end(), is_kept))
    return Error(Code::kExhausted, "no descriptors for the sockets of a sandbox");
  ATOLL_TRY(Policy policy, parse_policy_json(request.policy));
  ATOLL_TRY(auto gate,
            Gate::open(surroundings_, *request.sandbox, request.tenant, std::move(policy)));
  linux::NetworkSockets sockets;
  std::move(fds.begin(), fds.end(), sockets.begin());
  ATOLL_TRY_VOID(gate->serve(std::move(sockets)));
  gates_.emplace(*request.sandbox, std::move(gate));
  surroundings_.descriptors.set_sandboxes(gates_.size());
  return {};
}

Result<void> Control::check_room() const {
  if (surroundings_.descriptors.has_room_beside(gates_.size())) return {};
  return Error(Code::kExhausted, "no descriptors for another sandbox");
}

// Nothing is allowed after an error.
Result<void> Control::change(const Request& request) {
  auto gate = gates_.find(*request.sandbox);
  if (gate == gates_.end() || gate->second->closed())
    return Error(Code::kNotFound, "the sandbox is not served");
  auto policy = parse_policy_json(request.policy);
  if (!policy) gate->second->deny();
  if (!policy) return std::move(policy).error();
  return gate->second->change(request.tenant, std::move(*policy));
}

void Control::suspend(const SandboxId& id) {
  auto gate = gates_.find(id);
  if (gate == gates_.end()) return;
  gate->second->close();
  gates_.erase(gate);
  surroundings_.descriptors.set_sandboxes(gates_.size());
}

void Control::close(const SandboxId& id) {
  suspend(id);
  // Also of one that an earlier egress served.
  auto removed = NameTable::remove(surroundings_.directory, id);
  if (!removed) log_warning("a table of names stays", {removed.error()});
  auto forgotten = Spending::remove(surroundings_.directory, id);
  if (!forgotten) log_warning("a sandbox's budgets stay", {forgotten.error()});
  removed = CertificateAuthority::remove(surroundings_.directory, id);
  if (!removed) log_warning("an authority stays", {removed.error()});
  forget_old_logs();
}

// Logs outlive their sandboxes until all together take too much; then the oldest go.
void Control::forget_old_logs() {
  if (++closed_since_sweep_ < kClosesPerSweep) return;
  closed_since_sweep_ = 0;
  auto is_open = [this](const SandboxId& id) { return gates_.contains(id); };
  auto swept = AuditFile::sweep(surroundings_.directory, kLogBudgetBytes, is_open);
  if (!swept) log_warning("old audit logs stay", {swept.error()});
}

Result<void> Control::retain(const Request& request) {
  ATOLL_TRY(std::set<SandboxId> kept, parse_ids(request.retained));
  std::vector<SandboxId> gone;
  for (const auto& [id, gate] : gates_)
    if (!kept.contains(id)) gone.push_back(id);
  for (const SandboxId& id : gone) close(id);
  return {};
}

Result<void> Control::deny(const Request& request) {
  ATOLL_TRY(std::set<SandboxId> denied, parse_ids(request.retained));
  for (const SandboxId& id : denied)
    if (auto gate = gates_.find(id); gate != gates_.end()) gate->second->deny();
  return {};
}

Health Control::health() const {
  const Descriptors& descriptors = surroundings_.descriptors;
  return {.descriptors_limit = descriptors.limit(),
          .descriptors_used = descriptors.held() + gates_.size() * Descriptors::kOfSandbox,
          .sandboxes = gates_.size(),
          .sandboxes_limit = descriptors.most_sandboxes(),
          .connections_refused = descriptors.refused(),
          .connections_idle_ended = idle_ended_};
}

Result<void> Control::read(const Request& request, Reply& reply) {
  ATOLL_TRY(AuditPage page, AuditFile::read(surroundings_.directory, *request.sandbox,
                                            request.offset, kMaxPageBytes));
  for (const std::string& line : page.lines) reply.rows += line + "\n";
  reply.next_offset = page.next;
  return {};
}

Result<void> Control::answer_text(const Request& request, Reply& reply) {
  if (request.operation == kShowHealth) {
    reply.rows = encode_health(health());
    return {};
  }
  if (request.operation == kPutSecret) return put_secret(request, reply);
  if (request.operation == kRemoveSecret)
    return surroundings_.secrets->remove(request.tenant, request.policy);
  if (request.operation == kListSecrets) {
    for (const Secret* secret : surroundings_.secrets->list(request.tenant))
      reply.rows += boost::json::serialize(shown_secret(*secret)) + "\n";
    return {};
  }
  ATOLL_TRY(auto authority, CertificateAuthority::open(surroundings_.directory, *request.sandbox));
  ATOLL_TRY(reply.rows, authority.certificate_text());
  return {};
}

// Its errors name fields and never hold a value: they are logged.
Result<void> Control::put_secret(const Request& request, Reply& reply) {
  ATOLL_TRY(PutSecret put, parse_put_secret(request.policy));
  SecretStore& secrets = *surroundings_.secrets;
  const Secret* known = secrets.find(request.tenant, put.name);
  if (put.when == PutSecret::When::kAbsent && known != nullptr)
    return Error(Code::kConflict, "there is a secret " + put.name);
  if (put.when == PutSecret::When::kPresent && known == nullptr)
    return Error(Code::kNotFound, "there is no secret " + put.name);
  boost::json::object fields;
  if (put.when == PutSecret::When::kPresent) fields = whole_secret(*known);
  for (const auto& [key, value] : put.fields) fields[key] = value;
  ATOLL_TRY(Secret secret, parse_secret(put.name, fields));
  WallTime now = SystemClock().wall_now();
  ATOLL_TRY_VOID(secrets.put(request.tenant, std::move(secret), now));
  reply.rows = boost::json::serialize(shown_secret(*secrets.find(request.tenant, put.name)));
  return {};
}

void Control::close_all() {
  for (auto& [id, gate] : gates_) gate->close();
  gates_.clear();
}

}  // namespace atl::egress
