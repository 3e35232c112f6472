#include "egress/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

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

Status to_status(Code code) {
  if (code == Code::kInvalid) return Status::kInvalid;
  if (code == Code::kConflict) return Status::kConflict;
  return code == Code::kNotFound ? Status::kNotFound : Status::kFailed;
}

}  // namespace

Control::Control(const Surroundings& surroundings, Fd listener, uid_t client_uid)
    : surroundings_(surroundings),
      listener_(surroundings.executor, listener.release()),
      client_uid_(client_uid) {}

Task<void> Control::run() {
  while (true) {
    auto [error] = co_await listener_.async_wait(Descriptor::wait_read, kToken);
    if (error) co_return;
    Fd accepted(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted) continue;
    auto peer = linux::peer_credentials(accepted.get());
    if (!peer || peer->uid != client_uid_) {
      log_warning("refused a connection", {{"uid", peer ? static_cast<int64_t>(peer->uid) : -1}});
      continue;
    }
    // detached: owns its connection and ends with it
    spawn(surroundings_.executor, serve(std::move(accepted)));
  }
}

Task<void> Control::serve(Fd accepted) {
  Descriptor socket(surroundings_.executor, accepted.release());
  std::string buffer(kMaxMessageBytes, '\0');
  while (true) {
    auto [error] = co_await socket.async_wait(Descriptor::wait_read, kToken);
    if (error) co_return;
    std::array<Fd, linux::kNetworkSockets> received;
    auto got = linux::receive_message(socket.native_handle(), buffer, received, MSG_DONTWAIT);
    if (!got && got.error().system_errno() == EAGAIN) continue;
    if (!got || got->bytes == 0) co_return;
    auto request = parse_request({buffer.data(), got->bytes});
    if (!request || !got->whole) {
      log_warning("closed a connection", {{"message", request ? "cut off" : "malformed"}});
      co_return;
    }
    std::vector<Fd> fds;
    for (size_t i = 0; i < got->fds; ++i) fds.push_back(std::move(received[i]));
    std::string reply = encode_reply(answer(*request, std::move(fds)));
    while (send(socket.native_handle(), reply.data(), reply.size(), MSG_NOSIGNAL) < 0) {
      if (errno != EAGAIN) co_return;
      auto [failed] = co_await socket.async_wait(Descriptor::wait_write, kToken);
      if (failed) co_return;
    }
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

Result<void> Control::open(const Request& request, std::vector<Fd> fds) {
  if (fds.size() != linux::kNetworkSockets) return Error(Code::kInvalid, "not all the sockets");
  ATOLL_TRY(Policy policy, parse_policy_json(request.policy));
  if (gates_.contains(*request.sandbox)) {
    gates_[*request.sandbox]->close();
    gates_.erase(*request.sandbox);
  }
  ATOLL_TRY(auto gate,
            Gate::open(surroundings_, *request.sandbox, request.tenant, std::move(policy)));
  linux::NetworkSockets sockets;
  std::move(fds.begin(), fds.end(), sockets.begin());
  ATOLL_TRY_VOID(gate->serve(std::move(sockets)));
  gates_.emplace(*request.sandbox, std::move(gate));
  return {};
}

Result<void> Control::change(const Request& request) {
  auto gate = gates_.find(*request.sandbox);
  if (gate == gates_.end()) return Error(Code::kNotFound, "the sandbox is not served");
  ATOLL_TRY(Policy policy, parse_policy_json(request.policy));
  return gate->second->change(request.tenant, std::move(policy));
}

void Control::suspend(const SandboxId& id) {
  auto gate = gates_.find(id);
  if (gate == gates_.end()) return;
  gate->second->close();
  gates_.erase(gate);
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
  std::set<SandboxId> kept;
  std::string_view text = request.retained;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), SandboxId::kLength))) {
    auto id = SandboxId::parse(text.substr(0, SandboxId::kLength));
    if (!id) return Error(Code::kInvalid, "bad sandbox id");
    kept.insert(*id);
  }
  std::vector<SandboxId> gone;
  for (const auto& [id, gate] : gates_)
    if (!kept.contains(id)) gone.push_back(id);
  for (const SandboxId& id : gone) close(id);
  return {};
}

Result<void> Control::read(const Request& request, Reply& reply) {
  ATOLL_TRY(AuditPage page, AuditFile::read(surroundings_.directory, *request.sandbox,
                                            request.offset, kMaxPageBytes));
  for (const std::string& line : page.lines) reply.rows += line + "\n";
  reply.next_offset = page.next;
  return {};
}

Result<void> Control::answer_text(const Request& request, Reply& reply) {
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
