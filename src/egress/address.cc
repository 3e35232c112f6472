#include "egress/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <netinet/in.h>

#include "base/check.h"

namespace atl::egress {
namespace {

struct Special {
  std::string_view range;
  AddressClass value;
};

// IANA's special-purpose registries. The first that contains an address decides.
constexpr Special kSpecials[] = {
    {"169.254.169.254/32", AddressClass::kMetadata},
    {"169.254.170.2/32", AddressClass::kMetadata},
    {"100.100.100.200/32", AddressClass::kMetadata},
    {"168.63.129.16/32", AddressClass::kMetadata},
    {"192.0.0.192/32", AddressClass::kMetadata},
    {"fd00:ec2::/32", AddressClass::kMetadata},
    {"fd20:ce::254/128", AddressClass::kMetadata},
    {"0.0.0.0/8", AddressClass::kUnspecified},
    {"127.0.0.0/8", AddressClass::kLoopback},
    {"10.0.0.0/8", AddressClass::kPrivate},
    {"172.16.0.0/12", AddressClass::kPrivate},
    {"192.168.0.0/16", AddressClass::kPrivate},
    {"100.64.0.0/10", AddressClass::kShared},
    {"169.254.0.0/16", AddressClass::kLinkLocal},
    {"192.0.0.0/24", AddressClass::kReserved},
    {"192.0.2.0/24", AddressClass::kReserved},
    {"192.88.99.0/24", AddressClass::kEmbedded},
    {"198.18.0.0/15", AddressClass::kReserved},
    {"198.51.100.0/24", AddressClass::kReserved},
    {"203.0.113.0/24", AddressClass::kReserved},
    {"224.0.0.0/4", AddressClass::kMulticast},
    {"255.255.255.255/32", AddressClass::kBroadcast},
    {"240.0.0.0/4", AddressClass::kReserved},
    {"::/128", AddressClass::kUnspecified},
    {"::1/128", AddressClass::kLoopback},
    {"::/96", AddressClass::kEmbedded},
    {"::ffff:0:0/96", AddressClass::kEmbedded},
    {"::ffff:0:0:0/96", AddressClass::kEmbedded},
    {"64:ff9b::/96", AddressClass::kEmbedded},
    {"64:ff9b:1::/48", AddressClass::kEmbedded},
    {"2001::/32", AddressClass::kEmbedded},
    {"2002::/16", AddressClass::kEmbedded},
    {"2001:db8::/32", AddressClass::kReserved},
    {"3fff::/20", AddressClass::kReserved},
    {"2001::/23", AddressClass::kReserved},
    {"fc00::/7", AddressClass::kPrivate},
    {"fec0::/10", AddressClass::kPrivate},
    {"fe80::/10", AddressClass::kLinkLocal},
    {"ff00::/8", AddressClass::kMulticast},
};
// Of IPv6 nothing else is given out.
constexpr std::string_view kGlobalUnicast = "2000::/3";

bool lies_in(const Address& address, std::string_view text) {
  auto range = Cidr::parse(text);
  ATOLL_CHECK(range.has_value());
  return range->contains(address);
}

const Special* find_special(const Address& address) {
  for (const Special& special : kSpecials)
    if (lies_in(address, special.range)) return &special;
  return nullptr;
}

bool is_isatap(std::span<const unsigned char> bytes) {
  return (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

std::optional<unsigned char> take_decimal(std::string_view& text) {
  unsigned value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto digits = static_cast<size_t>(end - text.data());
  if (error != std::errc() || value > 255 || (digits > 1 && text[0] == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<unsigned char>(value);
}

bool parse_v4(std::string_view text, std::span<unsigned char, 4> bytes) {
  for (size_t i = 0; i < 4; ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return false;
      text.remove_prefix(1);
    }
    auto part = take_decimal(text);
    if (!part) return false;
    bytes[i] = *part;
  }
  return text.empty();
}

}  // namespace

std::string_view class_name(AddressClass value) {
  static constexpr std::string_view kNames[] = {"public",    "unspecified", "loopback", "private",
                                                "shared",    "link_local",  "metadata", "multicast",
                                                "broadcast", "embedded",    "reserved"};
  return kNames[static_cast<size_t>(value)];
}

bool is_never_dialled(AddressClass value) {
  switch (value) {
    case AddressClass::kMetadata:
    case AddressClass::kUnspecified:
    case AddressClass::kMulticast:
    case AddressClass::kBroadcast:
    case AddressClass::kEmbedded:
      return true;
    case AddressClass::kPublic:
    case AddressClass::kLoopback:
    case AddressClass::kPrivate:
    case AddressClass::kShared:
    case AddressClass::kLinkLocal:
    case AddressClass::kReserved:
      break;
  }
  return false;
}

Address Address::v4(std::span<const unsigned char, 4> bytes) {
  Address address;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

Address Address::v6(std::span<const unsigned char, 16> bytes) {
  Address address;
  address.family_ = Family::kV6;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

std::optional<Address> Address::parse(std::string_view text) {
  std::array<unsigned char, 4> four{};
  if (parse_v4(text, four)) return v4(four);
  if (text.find(':') == text.npos || text.size() >= INET6_ADDRSTRLEN) return std::nullopt;
  std::array<unsigned char, 16> sixteen{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), sixteen.data()) != 1) return std::nullopt;
  return v6(sixteen);
}

std::optional<Address> Address::from_sockaddr(const sockaddr* from, socklen_t bytes) {
  if (from->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    std::array<unsigned char, 4> four{};
    std::memcpy(four.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, 4);
    return v4(four);
  }
  if (from->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    std::array<unsigned char, 16> sixteen{};
    std::memcpy(sixteen.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr, 16);
    return v6(sixteen);
  }
  return std::nullopt;
}

std::string Address::string() const {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family_ == Family::kV4 ? AF_INET : AF_INET6, bytes_.data(), text, sizeof text);
  return text;
}

AddressClass Address::classify() const {
  if (const Special* special = find_special(*this)) return special->value;
  if (family_ == Family::kV4) return AddressClass::kPublic;
  if (is_isatap(bytes_)) return AddressClass::kEmbedded;
  return lies_in(*this, kGlobalUnicast) ? AddressClass::kPublic : AddressClass::kReserved;
}

std::optional<Cidr> Address::special_range() const {
  const Special* special = find_special(*this);
  return special == nullptr ? std::nullopt : Cidr::parse(special->range);
}

socklen_t Address::to_sockaddr(uint16_t port, sockaddr_storage& into) const {
  into = {};
  if (family_ == Family::kV4) {
    auto* four = reinterpret_cast<sockaddr_in*>(&into);
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    std::memcpy(&four->sin_addr, bytes_.data(), 4);
    return sizeof *four;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&into);
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  std::memcpy(&six->sin6_addr, bytes_.data(), 16);
  return sizeof *six;
}

std::optional<Cidr> Cidr::parse(std::string_view text) {
  size_t slash = text.find('/');
  auto first = Address::parse(text.substr(0, slash));
  if (!first) return std::nullopt;
  auto most = static_cast<unsigned>(first->bytes().size() * 8);
  unsigned bits = most;
  if (slash != text.npos) {
    std::string_view tail = text.substr(slash + 1);
    auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), bits);
    bool zero_led = tail.size() > 1 && tail[0] == '0';
    if (error != std::errc() || end != tail.data() + tail.size() || bits > most || zero_led)
      return std::nullopt;
  }
  for (unsigned bit = bits; bit < most; ++bit)
    if ((first->bytes()[bit / 8] & (0x80u >> (bit % 8))) != 0) return std::nullopt;
  return Cidr(*first, bits);
}

bool Cidr::contains(const Address& address) const {
  if (address.family() != first_.family()) return false;
  size_t whole = prefix_bits_ / 8;
  auto ours = first_.bytes(), theirs = address.bytes();
  if (!std::equal(ours.begin(), ours.begin() + static_cast<long>(whole), theirs.begin()))
    return false;
  if (prefix_bits_ % 8 == 0) return true;
  auto mask = static_cast<unsigned char>(0xff00u >> (prefix_bits_ % 8));
  return ((ours[whole] ^ theirs[whole]) & mask) == 0;
}

std::string Cidr::string() const { return first_.string() + "/" + std::to_string(prefix_bits_); }

}  // namespace atl::egress
