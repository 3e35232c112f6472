#include "egress/request_guard.h"

#include <strings.h>

#include <array>

namespace atl::egress {

namespace {

// A server that knows them sends the request back, secrets and all.
bool is_echoed(const std::string& method) {
  constexpr std::array kEchoed = {"TRACE", "TRACK"};
  for (const char* one : kEchoed)
    if (strcasecmp(method.c_str(), one) == 0) return true;
  return false;
}

}  // namespace

RequestGuard::RequestGuard(Gate& gate, Connection connection)
    : gate_(gate), connection_(std::move(connection)), stream_(connection_.to, connection_.port) {}

Result<RequestGuard::Passed> RequestGuard::pass(std::string_view bytes) {
  gate_.surroundings().changes.apply();
  if (!connection_.is_inspected && !gate_.inspector().rewrites()) {
    ATOLL_TRY(size_t taken, stream_.pass(bytes));
    ATOLL_TRY_VOID(pay(taken));
    return Passed{.taken = taken};
  }
  ATOLL_TRY(RequestStream::Piece piece, stream_.pass_piece(bytes));
  if (piece.is_head) return admit(bytes.substr(0, piece.bytes));
  ATOLL_TRY_VOID(pay(piece.bytes));
  return Passed{.taken = piece.bytes};
}

Result<void> RequestGuard::pay(size_t bytes) {
  ATOLL_TRY_VOID(connection_.purse.count_requests(stream_.requests()));
  return connection_.purse.spend_piece(Flow::kOut, bytes);
}

// What goes on in the place of the head.
Result<RequestGuard::Passed> RequestGuard::admit(std::string_view head) {
  const auto* name = std::get_if<HostName>(&connection_.to);
  if (connection_.is_inspected) {
    Decision decision{.reason = "no_rule"};
    if (name != nullptr)
      decision =
          gate_.policy().decide_request(*name, connection_.port, stream_.method(), stream_.path());
    connection_.row.rule = decision.rule;
    if (!decision.allowed())
      return Error(Code::kDenied, "no rule allows the request").with_reason(decision.reason);
  }
  if (is_echoed(stream_.method()) && gate_.inspector().rewrites(connection_.to))
    return Error(Code::kDenied, "the answer would show what the program may not see")
        .with_reason("echo_refused");
  ATOLL_TRY(std::string written,
            gate_.inspector().rewrite(head, connection_.to, stream_.path(), connection_.transport));
  ATOLL_TRY_VOID(pay(written.size()));
  Passed passed{.taken = head.size(), .instead = std::move(written)};
  if (!connection_.is_inspected) return passed;
  AuditRow allowed = row();
  allowed.allowed = true;
  if (!gate_.record(allowed))
    return Error(Code::kDenied, "the request cannot be recorded").with_reason("audit_failed");
  return passed;
}

AuditRow RequestGuard::row() const {
  AuditRow row = connection_.row;
  row.event = AuditEvent::kRequest;
  row.method = stream_.method();
  row.path = stream_.path();
  return row;
}

AuditRow RequestGuard::refusal(AuditEvent event, const Error& error) const {
  AuditRow refused = row();
  refused.event = event;
  refused.reason = error.reason();
  if (!error.field().empty()) refused.rule = error.field();
  return refused;
}

}  // namespace atl::egress
