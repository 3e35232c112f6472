// IP addresses and what they are good for. An address is dialled only when it is one of the public
// internet, or a rule names the special range that it is of; some never are.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atl::egress {

enum class AddressClass : unsigned char {
  kPublic,
  kUnspecified,
  kLoopback,
  kPrivate,  // RFC 1918, unique local, site local
  kShared,   // carrier-grade NAT
  kLinkLocal,
  kMetadata,  // of clouds: never dialled, whatever a rule says
  kMulticast,
  kBroadcast,
  kEmbedded,  // an IPv6 form that carries an IPv4 address: mapped, compatible, NAT64, 6to4, Teredo
  kReserved,  // documentation, benchmarks, protocol assignments, future use
};
std::string_view class_name(AddressClass value);
// Whatever a rule says: metadata services, and what no connection can mean.
bool is_never_dialled(AddressClass value);

class Cidr;

class Address {
 public:
  enum class Family : unsigned char { kV4, kV6 };

  static Address v4(std::span<const unsigned char, 4> bytes);
  static Address v6(std::span<const unsigned char, 16> bytes);
  // Dotted decimal of four parts without leading zeros, or RFC 4291 text without a scope.
  static std::optional<Address> parse(std::string_view text);
  static std::optional<Address> from_sockaddr(const sockaddr* from, socklen_t bytes);

  Family family() const { return family_; }
  // 4 or 16 of them.
  std::span<const unsigned char> bytes() const {
    return {bytes_.data(), family_ == Family::kV4 ? size_t{4} : size_t{16}};
  }
  std::string string() const;
  AddressClass classify() const;
  // The range of IANA's registries that makes it special; nothing: it is of none.
  std::optional<Cidr> special_range() const;
  // Fills a sockaddr_in or sockaddr_in6; its length.
  socklen_t to_sockaddr(uint16_t port, sockaddr_storage& into) const;
  auto operator<=>(const Address&) const = default;

 private:
  Address() = default;
  Family family_ = Family::kV4;
  std::array<unsigned char, 16> bytes_{};
};

class Cidr {
 public:
  // "10.0.0.0/8", "fd00::/8"; a bare address is a range of one. Bits behind the prefix must be
  // zero.
  static std::optional<Cidr> parse(std::string_view text);

  bool contains(const Address& address) const;
  bool contains(const Cidr& other) const {
    return other.prefix_bits_ >= prefix_bits_ && contains(other.first_);
  }
  const Address& first() const { return first_; }
  unsigned prefix_bits() const { return prefix_bits_; }
  std::string string() const;
  auto operator<=>(const Cidr&) const = default;

 private:
  Cidr(Address first, unsigned bits) : first_(first), prefix_bits_(bits) {}
  Address first_;
  unsigned prefix_bits_;
};

}  // namespace atl::egress
