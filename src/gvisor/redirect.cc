#include "gvisor/redirect.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <string_view>

#include "base/fd.h"

namespace atl::gvisor {
namespace {

// <linux/netfilter_ipv4/ip_tables.h> is for C; these are its structures.

constexpr int kReplaceTable = 64;         // IPT_SO_SET_REPLACE
constexpr int32_t kAccept = -2;           // -NF_ACCEPT - 1
constexpr uint32_t kPortIsSpecified = 2;  // NF_NAT_RANGE_PROTO_SPECIFIED

// Hooks, by the kernel's numbers.
constexpr unsigned kArrival = 0, kInput = 1, kDeparture = 3, kSending = 4, kHooks = 5;

struct Head {
  char name[32];
  uint32_t valid_hooks, entries, bytes;
  uint32_t first[kHooks], last[kHooks];  // offsets of entries
  uint32_t counters;
  uint64_t counters_address;
};
static_assert(sizeof(Head) == 96);

struct Entry {
  std::array<unsigned char, 4> source = {}, destination = {};
  std::array<unsigned char, 4> source_mask = {}, destination_mask = {};
  char interfaces[32] = {}, interface_masks[32] = {};
  uint16_t protocol = 0;
  uint8_t flags = 0, inverse_flags = 0;
  uint32_t cache = 0;
  uint16_t target_offset = 0, next_offset = 0;
  uint32_t came_from = 0;
  uint64_t packets = 0, bytes = 0;
};
static_assert(sizeof(Entry) == 112);

struct Target {
  uint16_t bytes = 0;
  char name[29] = {};
  uint8_t revision = 0;
};
static_assert(sizeof(Target) == 32);

struct Standard {
  Target target = {};
  int32_t verdict = 0;
  uint32_t padding = 0;
};
static_assert(sizeof(Standard) == 40);

struct Redirect {
  Target target = {};
  uint32_t ranges = 0, flags = 0, first_address = 0, last_address = 0;
  uint16_t first_port = 0, last_port = 0;  // in network order
  uint32_t padding = 0;
};
static_assert(sizeof(Redirect) == 56);

struct Failure {
  Target target = {};
  char name[32] = {};
};
static_assert(sizeof(Failure) == 64);

class Table {
 public:
  // Each gives the offset of its entry.
  uint32_t accept(const Entry& match = {}) { return add(match, Standard{.verdict = kAccept}, ""); }
  uint32_t redirect(uint16_t port) {
    uint16_t ordered = htons(port);
    Redirect to = {
        .ranges = 1, .flags = kPortIsSpecified, .first_port = ordered, .last_port = ordered};
    return add({.protocol = IPPROTO_TCP}, to, "REDIRECT");
  }
  // The last of every table.
  void fail() {
    Failure failure;
    std::strcpy(failure.name, "ERROR");
    add({}, failure, "ERROR");
  }
  std::string finish(Head head) const {
    head.entries = entries_;
    head.bytes = static_cast<uint32_t>(bytes_.size());
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + bytes_;
  }

 private:
  template <typename T>
  uint32_t add(Entry entry, T to, const char* name) {
    auto offset = static_cast<uint32_t>(bytes_.size());
    entry.target_offset = sizeof entry;
    entry.next_offset = sizeof entry + sizeof to;
    to.target.bytes = sizeof to;
    std::strcpy(to.target.name, name);
    bytes_.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    bytes_.append(reinterpret_cast<const char*>(&to), sizeof to);
    ++entries_;
    return offset;
  }

  std::string bytes_;
  uint32_t entries_ = 0;
};

}  // namespace

std::string redirect_table(const std::array<unsigned char, 4>& own, uint16_t port) {
  Table table;
  Head head = {};
  std::strcpy(head.name, "nat");
  for (unsigned hook : {kArrival, kInput, kDeparture, kSending}) {
    head.valid_hooks |= 1u << hook;
    if (hook == kDeparture) {
      head.first[hook] =
          table.accept({.destination = {127, 0, 0, 0}, .destination_mask = {255, 0, 0, 0}});
      table.accept({.destination = own, .destination_mask = {255, 255, 255, 255}});
      table.redirect(port);
    }
    head.last[hook] = table.accept();
    if (hook != kDeparture) head.first[hook] = head.last[hook];
  }
  table.fail();
  return table.finish(head);
}

Result<void> redirect_connections(const std::array<unsigned char, 4>& own, uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  if (!socket) return Error::system("open a raw socket");
  std::string table = redirect_table(own, port);
  if (setsockopt(socket.get(), SOL_IP, kReplaceTable, table.data(),
                 static_cast<socklen_t>(table.size())) != 0)
    return Error::system("redirect connections");
  return {};
}

}  // namespace atl::gvisor
