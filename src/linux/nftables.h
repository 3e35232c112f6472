// nft(8) without the program: a table of rules written as messages to the kernel and put in place
// in one piece. Only the expressions that are used here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "linux/netlink_messages.h"

namespace atl::linux {

enum class Hook : uint32_t { kArrival = 0, kDeparture = 3 };  // prerouting, output
enum class Verdict : uint32_t { kDrop = 0, kAccept = 1 };
enum class IpFamily : unsigned char { kV4, kV6 };

// A prefix of addresses of one family: 4 or 16 bytes, of which those behind the prefix are zero.
struct AddressPrefix {
  std::span<const unsigned char> first;
  unsigned bits = 0;
};

// Rules of both IP families. Order: chain(), then its rules; a rule is begin_rule(), what it
// compares, what it does, end_rule(). A rule that does not compare equal is passed over.
class NftTable {
 public:
  explicit NftTable(std::string_view name);

  // An empty set of ranges, to be filled later. Before the chains that ask for it.
  void range_set(std::string_view name, IpFamily family);
  void chain(std::string_view name, Hook hook, int priority, Verdict otherwise);

  void begin_rule();
  void is_family(IpFamily family);
  void is_protocol(uint8_t protocol);
  // The destination, in the prefix of that many bits.
  void is_destination(std::span<const unsigned char> address, unsigned prefix_bits);
  void is_destination_in(std::string_view set, IpFamily family);
  void is_destination_port(uint16_t port);
  void count_and_log(uint16_t group, uint32_t packet_bytes);
  // To a listening socket that is transparent.
  void hand_to(std::span<const unsigned char> address, uint16_t port);
  void verdict(Verdict verdict);
  void reset_connection();
  void say_unreachable();
  void end_rule();

  // In the caller's network namespace.
  Result<void> install();

 private:
  void begin_expression(std::string_view name);
  void end_expression();
  void compare(std::span<const unsigned char> value);
  void load_payload(uint32_t base, uint32_t offset, uint32_t bytes);
  void load_value(uint32_t target, std::span<const unsigned char> value);
  void reject(uint32_t type, uint8_t code);

  std::string_view name_, chain_;
  NetlinkMessages messages_;
};

// Puts these ranges in the place of all that a set of an installed table holds, in one piece.
// None may lie in another.
Result<void> replace_ranges(std::string_view table, std::string_view set,
                            std::span<const AddressPrefix> ranges);

}  // namespace atl::linux
