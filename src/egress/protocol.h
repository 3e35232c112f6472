// What atolld may ask of egress: one message a request over a SOCK_SEQPACKET socket, and one back.
// atolld is the only client; egress still checks every field. A message of any version begins with
// magic and version, and nothing behind an unknown one is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace atl::egress {

inline constexpr uint32_t kMagic = 0x45544c41;  // "ALTE"
inline constexpr uint16_t kVersion = 1;
inline constexpr size_t kMaxPageBytes = 128 * 1024;
inline constexpr size_t kMaxMessageBytes = 160 * 1024;
inline constexpr size_t kMaxRetained = 4096;
inline constexpr const char* kSocketName = "egress.sock";

enum class Operation : uint16_t {
  kOpen = 1,     // with the sockets of a sandbox's network: serve it, under this policy
  kPolicy = 2,   // another policy; kNotFound when it is not served
  kClose = 3,    // stop serving it; its audit log stays. Closing nothing is a success
  kRetain = 4,   // close every sandbox that is not named
  kRead = 5,     // rows of the audit log from an offset
  kForget = 6,   // remove the audit log of a sandbox that is gone
  kSuspend = 7,  // as kClose, but what it has spent, its names and its authority stay
  kDeny = 8,     // those that are named may reach nothing until another policy is told
  kRoom = 9,     // whether there is room for one more: kFull when there is none
};

struct Request {
  Operation operation = Operation::kRead;
  uint64_t request_id = 0;
  std::optional<SandboxId> sandbox = {};  // where the operation names one
  uint64_t tenant = 0;                    // kOpen, kPolicy
  std::string policy = {};                // JSON; kOpen, kPolicy
  uint64_t offset = 0;                    // kRead
  std::string retained = {};              // ids without a gap; kRetain, kDeny
};

enum class Status : uint16_t {
  kOk = 0,
  kInvalid = 1,
  kNotFound = 2,
  kFailed = 3,
  kConflict = 4,
  kFull = 5  // no descriptors for another sandbox
};

struct Reply {
  uint64_t request_id = 0;
  Status status = Status::kOk;
  std::string message = {};
  uint64_t next_offset = 0;  // kRead
  std::string rows = {};     // kRead: lines
};

std::string encode_request(const Request& request);
Result<Request> parse_request(std::string_view message);
std::string encode_reply(const Reply& reply);
Result<Reply> parse_reply(std::string_view message);

}  // namespace atl::egress
