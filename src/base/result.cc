#include "base/result.h"

#include <string.h>

namespace atl {
namespace {

Code code_of(int system_errno) {
  switch (system_errno) {
    case ENOENT:
      return Code::kNotFound;
    case EPERM:
    case EACCES:
      return Code::kDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kExhausted;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnsupported;
    case ETIMEDOUT:
      return Code::kTimeout;
    default:
      return Code::kSystem;
  }
}

}  // namespace

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kConflict:
      return "conflict";
    case Code::kDenied:
      return "denied";
    case Code::kExhausted:
      return "exhausted";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kTimeout:
      return "timeout";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kCancelled:
      return "cancelled";
    case Code::kSystem:
      return "system";
  }
  return "unknown";
}

Error Error::from_errno(std::string_view operation, int system_errno) {
  char text[128] = {};
  const char* reason = strerror_r(system_errno, text, sizeof text);
  std::string message(operation);
  message += ": ";
  message += reason;
  return Error(code_of(system_errno), std::move(message), system_errno);
}

}  // namespace atl
