// DNS messages, as far as a sandbox may speak them: one question in, one answer out (RFC 1035).
// Everything else that a message can carry is refused, for it would be a way to say something.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "egress/address.h"

namespace atl::egress {

inline constexpr size_t kMaxQuestionBytes = 1232;
inline constexpr uint32_t kAnswerSeconds = 60;

enum class RecordType : uint16_t { kA = 1, kAaaa = 28 };  // others are never answered
enum class DnsStatus : uint8_t {
  kOk = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNoSuchName = 3,
  kNotImplemented = 4,
  kRefused = 5,
};

struct DnsQuestion {
  uint16_t id = 0;
  bool recursion_desired = false;
  // Labels joined by dots, as they came: any byte may be in it but the dot. Empty: the root.
  std::string name;
  uint16_t type = 0;
  uint16_t record_class = 0;
  std::string wire;  // the question's bytes, to be repeated

  bool asks_for(RecordType wanted) const { return type == static_cast<uint16_t>(wanted); }
};

// Anything that is not one plain question is kInvalid: an answer, another operation, more than one
// question, records other than one OPT, a compressed name, a label with a dot, bytes at the end.
Result<DnsQuestion> parse_dns_question(std::span<const unsigned char> message);

// At most one address, of the family that was asked for.
std::string make_dns_answer(const DnsQuestion& question, DnsStatus status,
                            const Address* address = nullptr);

// The id of a message that could not be parsed, to answer that; nothing when there is none.
std::optional<std::string> make_format_error(std::span<const unsigned char> message);

}  // namespace atl::egress
