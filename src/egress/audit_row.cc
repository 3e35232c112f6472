#include "egress/audit_row.h"

#include <fmt/format.h>

#include "base/log.h"

namespace atl::egress {
namespace {

constexpr size_t kMaxShownBytes = 300;

void add_text(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  fmt::format_to(std::back_inserter(out), ",\"{}\":", key);
  append_json_string(out, value.substr(0, kMaxShownBytes));
}

void add_number(std::string& out, std::string_view key, uint64_t value) {
  if (value != 0) fmt::format_to(std::back_inserter(out), ",\"{}\":{}", key, value);
}

}  // namespace

std::string_view event_name(AuditEvent event) {
  static constexpr std::string_view kNames[] = {"dns",    "connect", "packet",
                                                "closed", "request", "note"};
  return kNames[static_cast<size_t>(event)];
}

std::string AuditRow::flood_key() const {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", static_cast<int>(event), name, address, port,
                     protocol, reason, method, path);
}

std::string format_members(const AuditRow& row, WallTime time) {
  std::string out =
      fmt::format("\"time\":\"{}\",\"event\":\"{}\"", to_rfc3339(time), event_name(row.event));
  bool is_decision = row.event != AuditEvent::kClosed && row.event != AuditEvent::kNote;
  if (is_decision) add_text(out, "decision", row.allowed ? "allow" : "deny");
  add_text(out, "name", row.name);
  add_text(out, "address", row.address);
  add_number(out, "port", row.port);
  add_text(out, "protocol", row.protocol);
  add_text(out, "via", row.via);
  add_text(out, "method", row.method);
  add_text(out, "path", row.path);
  add_text(out, "rule", row.rule);
  add_text(out, "reason", row.reason);
  add_text(out, "before", row.before);
  add_number(out, "connection", row.connection);
  if (row.event == AuditEvent::kClosed)
    out += fmt::format(",\"bytes_out\":{},\"bytes_in\":{}", row.bytes_out, row.bytes_in);
  add_number(out, "requests", row.requests);
  if (is_decision) out += fmt::format(",\"count\":{}", row.count);
  return out;
}

}  // namespace atl::egress
