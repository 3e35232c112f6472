// One line of a sandbox's audit log: what it tried to reach, what was decided and why. Names and
// paths come from the sandbox and are escaped; no header, body or secret is ever in a row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace atl::egress {

// What a row is about.
enum class AuditEvent : unsigned char {
  kDns,      // a question for a name
  kConnect,  // a TCP connection, decided before anything is dialled
  kPacket,   // anything else that was sent: rejected by the kernel
  kClosed,   // the end of a connection that was allowed, with its bytes
  kRequest,  // one request on a connection that is inspected, before it goes on
  kNote,     // about the log itself or the sandbox's policy
};
std::string_view event_name(AuditEvent event);

struct AuditRow {
  AuditEvent event = AuditEvent::kNote;
  bool allowed = false;
  std::string name = {};     // as asked for; may be any bytes
  std::string address = {};  // the one that was dialled, or that a packet was sent to
  uint16_t port = 0;
  std::string protocol = {};  // "tcp", "udp", "icmp", "tls", "http", …
  std::string via = {};       // "upstream": the address is that of the host's proxy
  std::string method = {};    // of a request that was looked at, as is the next
  std::string path = {};      // without the query
  std::string rule = {};
  std::string reason = {};
  std::string before = {};  // kNote: the hash that a segment goes on from
  uint64_t connection = 0;  // which, for kConnect and kClosed; 0: none
  uint64_t bytes_out = 0;   // kClosed only, as is the next
  uint64_t bytes_in = 0;
  uint64_t requests = 0;  // plain HTTP that was looked at
  uint64_t count = 1;     // how many attempts this row stands for

  // Attempts that differ in nothing of this are counted together.
  std::string flood_key() const;
};

// The members of the JSON object, without braces: "event":"dns",…
std::string format_members(const AuditRow& row, WallTime time);

}  // namespace atl::egress
