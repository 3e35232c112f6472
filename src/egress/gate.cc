#include "egress/gate.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "async/spawn.h"
#include "base/log.h"
#include "egress/dns_server.h"
#include "egress/refusal.h"
#include "egress/relay.h"
#include "egress/synthetic.h"

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr size_t kDatagramBytes = 64 * 1024;
constexpr size_t kMaxKnownNames = 256;
constexpr std::chrono::milliseconds kAcceptPause{50};

// A packet that we send into the sandbox's network ourselves, to be refused: its number tells how
// many before it were refused without our being told. From port 53, which only we have there, to an
// address for documents.
constexpr std::array<unsigned char, 4> kMarkerAddress = {192, 0, 2, 1};
constexpr uint16_t kMarkerPort = 9;

bool is_marker(const Refusal& refusal) {
  return refusal.destination == Address::v4(kMarkerAddress) && refusal.port == kMarkerPort &&
         refusal.source_port == kDnsPort && refusal.protocol == "udp";
}

bool is_dns_stream(size_t index) {
  return index == static_cast<size_t>(linux::NetworkSocket::kDnsStream4) ||
         index == static_cast<size_t>(linux::NetworkSocket::kDnsStream6);
}

bool is_dns(size_t index) {
  return index == static_cast<size_t>(linux::NetworkSocket::kDns4) ||
         index == static_cast<size_t>(linux::NetworkSocket::kDns6);
}

}  // namespace

Gate::Gate(const Surroundings& surroundings, SandboxId id, uint64_t tenant, Policy policy,
           Records records)
    : surroundings_(surroundings),
      id_(id),
      tenant_(tenant),
      policy_(std::move(policy), surroundings.ceiling),
      names_(std::move(records.names)),
      audit_(std::move(records.audit)),
      spending_(std::move(records.spending)),
      inspector_({policy_, tenant_, surroundings.secrets, surroundings.directory, id}),
      tally_timer_(surroundings.executor),
      connections_(surroundings.descriptors) {}

Result<std::shared_ptr<Gate>> Gate::open(const Surroundings& surroundings, SandboxId id,
                                         uint64_t tenant, Policy policy) {
  ATOLL_TRY(NameTable names, NameTable::open(surroundings.directory, id));
  ATOLL_TRY(AuditFile audit, AuditFile::open(surroundings.directory, id, surroundings.retention));
  ATOLL_TRY(Spending spending, Spending::open(surroundings.directory, id, policy));
  Records records{std::move(names), std::move(audit), std::move(spending)};
  return std::shared_ptr<Gate>(
      new Gate(surroundings, id, tenant, std::move(policy), std::move(records)));
}

Result<void> Gate::serve(linux::NetworkSockets sockets) {
  for (Fd& socket : sockets) {
    boost::system::error_code error;
    auto descriptor = std::make_unique<Descriptor>(surroundings_.executor);
    descriptor->assign(socket.get(), error);
    if (error) return Error(Code::kSystem, "watch a socket: " + error.message());
    (void)socket.release();
    sockets_.push_back(std::move(descriptor));
  }
  auto self = shared_from_this();
  for (size_t i = 0; i + 1 < sockets_.size(); ++i) {
    Descriptor& socket = *sockets_[i];
    auto task = is_dns(i) ? answer_questions(self, socket)
                          : accept_connections(self, socket, is_dns_stream(i));
    // detached: owns a share of the gate and ends when its socket is closed
    spawn(surroundings_.executor, std::move(task));
  }
  // detached: owns a share too
  spawn(surroundings_.executor, read_refusals(self));
  return {};
}

Result<void> Gate::change(uint64_t tenant, Policy policy) {
  tenant_ = tenant;
  if (policy == policy_.policy()) return {};
  auto counted = spending_.change(policy);
  policy_.set_policy(counted ? std::move(policy) : Policy());
  known_.clear();
  connections_.revoke_denied();
  return counted;
}

void Gate::deny() { (void)change(tenant_, Policy()); }  // nothing of it is to be counted

void Gate::close() {
  closed_ = true;
  for (auto& socket : sockets_) {
    boost::system::error_code ignored;
    socket->close(ignored);
  }
  tally_timer_.cancel();
  for (const AuditRow& row : tally_.take())
    if (auto kept = audit_.append(tenant_, row, clock_.wall_now()); !kept)
      log_error("denials are not in the audit log", {{"sandbox", id_.view()}, kept.error()});
  connections_.cut_all("sandbox_gone");
}

Task<Result<std::vector<Address>>> Gate::resolve(HostName name, uint16_t port) {
  auto known = known_.find(name);
  SteadyTime now = clock_.steady_now();
  std::vector<Address> all;
  if (known != known_.end() && known->second.until > now) {
    all = known->second.addresses;
  } else {
    auto resolved = co_await surroundings_.resolver.resolve(name);
    if (!resolved) co_return std::move(resolved).error();
    if (known_.size() >= kMaxKnownNames) known_.clear();
    all = resolved->addresses;
    SteadyTime until = clock_.steady_now() + resolved->lifetime;
    known_.insert_or_assign(name, Known{all, until});
  }
  std::erase_if(all, [&](const Address& one) { return !policy_.may_dial(one, port); });
  if (all.empty())
    co_return Error(Code::kDenied, "no address that may be dialled").with_reason("address_refused");
  co_return all;
}

Result<void> Gate::record(const AuditRow& row) {
  bool may_flood =
      row.event == AuditEvent::kDns || (!row.allowed && row.event != AuditEvent::kClosed);
  if (may_flood && !tally_.add(row, clock_.steady_now())) {
    if (!tally_waits_ && !closed_) {
      tally_waits_ = true;
      // detached: owns a share of the gate and ends in a second
      spawn(surroundings_.executor, flush_tally(shared_from_this()));
    }
    return {};
  }
  auto kept = audit_.append(tenant_, row, clock_.wall_now());
  if (!kept) log_error("the audit log fails", {{"sandbox", id_.view()}, kept.error()});
  return kept;
}

Task<void> Gate::flush_tally([[maybe_unused]] std::shared_ptr<Gate> self) {
  tally_timer_.expires_after(kTallyTime);
  co_await tally_timer_.async_wait(kToken);
  tally_waits_ = false;
  for (const AuditRow& row : tally_.take())
    if (auto kept = audit_.append(tenant_, row, clock_.wall_now()); !kept)
      log_error("denials are not in the audit log", {{"sandbox", id_.view()}, kept.error()});
}

void Gate::record_refusals(std::span<const unsigned char> datagram) {
  for (const Refusal& refusal : parse_refusals(datagram)) {
    AuditRow row{.event = AuditEvent::kPacket,
                 .address = refusal.destination.string(),
                 .port = refusal.port,
                 .protocol = refusal.protocol,
                 .reason = "not_a_name"};
    // Messages that the kernel could not deliver are part of the same flood.
    auto whose = is_marker(refusal) ? RefusalCount::Whose::kOurs : RefusalCount::Whose::kSandbox;
    row.count = refusals_.add(refusal.sequence, whose);
    if (row.count == 0) continue;
    if (is_marker(refusal))
      row = {.event = AuditEvent::kPacket, .reason = "not_a_name", .count = row.count};
    (void)record(row);  // its failure is logged; nothing is to be stopped
  }
}

void Gate::send_marker() {
  sockaddr_storage to;
  socklen_t bytes = Address::v4(kMarkerAddress).to_sockaddr(kMarkerPort, to);
  int socket = sockets_[static_cast<size_t>(linux::NetworkSocket::kDns4)]->native_handle();
  // Refused, as it shall be, unless it did not even get that far.
  ssize_t sent =
      sendto(socket, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to), bytes);
  bool held_up = sent < 0 && (errno == EAGAIN || errno == ENOBUFS);
  if (!held_up) refusals_.marker_sent();
}

Task<void> Gate::read_refusals([[maybe_unused]] std::shared_ptr<Gate> self) {
  Descriptor& socket = *sockets_.back();
  std::vector<unsigned char> buffer(kDatagramBytes);
  while (!closed_) {
    auto [error] = co_await socket.async_wait(Descriptor::wait_read, kToken);
    if (error) break;
    bool lost = false;
    while (!closed_) {
      ssize_t count = recv(socket.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      bool lost_now = count < 0 && errno == ENOBUFS;
      lost = lost || lost_now;
      if (lost_now) continue;
      if (count <= 0) break;
      record_refusals(std::span(buffer).first(static_cast<size_t>(count)));
    }
    if (lost && !closed_) send_marker();
  }
  close_unserved();
}

// More than this process may have for connections: told at once, as one of too many.
bool Gate::is_too_many(Fd& accepted) {
  if (surroundings_.descriptors.is_for_connections(accepted.get())) return false;
  surroundings_.descriptors.note_refused();
  linger reset = {.l_onoff = 1, .l_linger = 0};
  setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  accepted = Fd();
  (void)record({.event = AuditEvent::kConnect, .reason = "too_many_connections"});
  return true;
}

Task<void> Gate::accept_connections([[maybe_unused]] std::shared_ptr<Gate> self,
                                    Descriptor& listener, bool dns) {
  while (!closed_) {
    auto [error] = co_await listener.async_wait(Descriptor::wait_read, kToken);
    if (error) break;
    while (!closed_) {
      Fd accepted(
          accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!accepted && errno != EAGAIN && errno != ECONNABORTED) {
        // Out of descriptors: the connection waits, and so do we, instead of turning in a circle.
        asio::steady_timer pause(surroundings_.executor, kAcceptPause);
        co_await pause.async_wait(kToken);
      }
      if (!accepted) break;
      if (is_too_many(accepted)) continue;
      auto task = dns ? serve_dns_stream(self, std::move(accepted))
                      : relay_connection(self, std::move(accepted));
      // detached: owns its connection and a share of the gate
      spawn(surroundings_.executor, std::move(task));
    }
  }
  close_unserved();
}

// One of its sockets cannot be watched any more: then the kernel refuses all, until the sandbox is
// told anew.
void Gate::close_unserved() {
  if (closed_) return;
  log_error("a network cannot be served", {{"sandbox", id_.view()}});
  close();
}

Task<void> Gate::answer_questions([[maybe_unused]] std::shared_ptr<Gate> self, Descriptor& socket) {
  while (!closed_) {
    auto [error] = co_await socket.async_wait(Descriptor::wait_read, kToken);
    if (error) break;
    surroundings_.changes.apply();
    if (closed_) break;
    answer_datagrams(*self, socket.native_handle());
  }
  close_unserved();
}

}  // namespace atl::egress
