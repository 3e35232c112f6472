// The addresses that exist only inside sandboxes. Those of the synthetic ranges stand for names;
// the first of each range is the sandbox's own, where egress listens. The ranges are given to
// nobody on the internet (RFC 2544, RFC 4193).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace atl::egress {

using V4Bytes = std::array<unsigned char, 4>;
using V6Bytes = std::array<unsigned char, 16>;

inline constexpr V4Bytes kSyntheticV4 = {198, 18, 0, 0};
inline constexpr unsigned kSyntheticV4Bits = 15;
inline constexpr V6Bytes kSyntheticV6 = {0xfd, 0x00, 0xa7, 0x01};
inline constexpr unsigned kSyntheticV6Bits = 32;

// The sandbox's own: where programs are told to send their questions (/etc/resolv.conf).
inline constexpr V4Bytes kInsideV4 = {198, 18, 0, 1};
inline constexpr V6Bytes kInsideV6 = {0xfd, 0x00, 0xa7, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
inline constexpr char kInsideV4Text[] = "198.18.0.1";

// Low ports, which ordinary programs cannot take while egress is away.
inline constexpr uint16_t kConnectionPort = 1;
inline constexpr uint16_t kDnsPort = 53;
// Of the own address: what comes to it is handed to the connection port, so nobody can take it.
inline constexpr uint16_t kProxyPort = 3128;

// The first ones are left free.
inline constexpr uint32_t kFirstSynthetic = 256;
inline constexpr uint32_t kMaxSynthetic = (1u << (32 - kSyntheticV4Bits)) - kFirstSynthetic;

constexpr V4Bytes synthetic_v4(uint32_t number) {
  uint32_t host = (198u << 24 | 18u << 16) + kFirstSynthetic + number;
  return {static_cast<unsigned char>(host >> 24), static_cast<unsigned char>(host >> 16),
          static_cast<unsigned char>(host >> 8), static_cast<unsigned char>(host)};
}

constexpr V6Bytes synthetic_v6(uint32_t number) {
  V6Bytes bytes = kSyntheticV6;
  uint32_t host = kFirstSynthetic + number;
  for (unsigned i = 0; i < 4; ++i) bytes[15 - i] = static_cast<unsigned char>(host >> (8 * i));
  return bytes;
}

// Whether an address of 4 or 16 bytes is of a synthetic range.
constexpr bool is_synthetic(std::span<const unsigned char> bytes) {
  if (bytes.size() == 4) return bytes[0] == kSyntheticV4[0] && (bytes[1] & 0xfe) == kSyntheticV4[1];
  for (size_t i = 0; i < kSyntheticV6Bits / 8; ++i)
    if (bytes[i] != kSyntheticV6[i]) return false;
  return true;
}

// Of an address of 4 or 16 bytes; nothing if it stands for no name.
constexpr std::optional<uint32_t> synthetic_number(std::span<const unsigned char> bytes) {
  uint32_t host = 0;
  for (unsigned char byte : bytes.last(4)) host = host << 8 | byte;
  if (bytes.size() == 4) host -= 198u << 24 | 18u << 16;
  if (host < kFirstSynthetic || host - kFirstSynthetic >= kMaxSynthetic) return std::nullopt;
  uint32_t number = host - kFirstSynthetic;
  if (bytes.size() == 4) return number;
  V6Bytes wanted = synthetic_v6(number);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (bytes[i] != wanted[i]) return std::nullopt;
  return number;
}

}  // namespace atl::egress
