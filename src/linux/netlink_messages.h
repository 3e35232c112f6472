// netlink(7): messages written into one buffer and sent together. The kernel says what is wrong
// with any of them, and that all went well only if it is asked to, which costs a system call each.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

class NetlinkMessages {
 public:
  // Ends the message before.
  template <typename Header>
  void begin(uint16_t type, uint16_t flags, const Header& header) {
    begin_bytes(type, flags, {reinterpret_cast<const char*>(&header), sizeof header});
  }
  void attribute(uint16_t type, std::span<const char> value);
  void attribute(uint16_t type, std::span<const unsigned char> value) {
    attribute(type, std::span(reinterpret_cast<const char*>(value.data()), value.size()));
  }
  // With its final zero.
  void text(uint16_t type, std::string_view value);
  void u8(uint16_t type, uint8_t value) { attribute(type, as_bytes(value)); }
  void u32(uint16_t type, uint32_t value) { attribute(type, as_bytes(value)); }
  // In network order.
  void be16(uint16_t type, uint16_t value);
  void be32(uint16_t type, uint32_t value);
  void begin_nest(uint16_t type);
  void end_nest();

  // The message that is being written is to be acknowledged. The last one must be.
  void acknowledge();

  // Sends all and waits for the first error or all acknowledgements. `socket` has had no other use.
  Result<void> send(int socket);

 private:
  template <typename T>
  static std::span<const char> as_bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  void begin_bytes(uint16_t type, uint16_t flags, std::string_view header);
  void end_message();

  std::string bytes_;
  size_t message_ = 0;  // where the one that is being written begins
  std::string nests_;   // where open ones begin, as raw numbers
  uint32_t sequence_ = 0;
  unsigned answers_ = 0;
};

// A socket of a family, in the caller's network namespace.
Result<Fd> open_netlink(int family);

}  // namespace atl::linux
