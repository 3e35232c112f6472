#include "agent/file_ports.h"

#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxTableBytes = 16 * 1024 * 1024;
constexpr std::string_view kListening = "0A";
constexpr size_t kWordDigits = 8;

std::optional<uint32_t> parse_hex(std::string_view digits) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

// The kernel prints an address as words in the order of this machine's bytes.
std::optional<std::string> parse_address(std::string_view digits) {
  uint32_t words[4] = {};
  size_t count = digits.size() / kWordDigits;
  if (digits.size() % kWordDigits != 0 || (count != 1 && count != 4)) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    auto word = parse_hex(digits.substr(i * kWordDigits, kWordDigits));
    if (!word) return std::nullopt;
    words[i] = *word;
  }
  char text[INET6_ADDRSTRLEN];
  if (inet_ntop(count == 1 ? AF_INET : AF_INET6, words, text, sizeof text) == nullptr)
    return std::nullopt;
  return std::string(text);
}

std::optional<ListeningPort> parse_line(std::string_view line) {
  take_word(line);  // number of the line
  std::string_view local = take_word(line);
  take_word(line);  // remote address
  size_t colon = local.find(':');
  if (take_word(line) != kListening || colon == local.npos) return std::nullopt;
  auto port = parse_hex(local.substr(colon + 1));
  auto address = parse_address(local.substr(0, colon));
  if (!port || *port == 0 || *port > 0xffff || !address) return std::nullopt;
  return ListeningPort{static_cast<uint16_t>(*port), *address};
}

}  // namespace

std::vector<ListeningPort> parse_listening_ports(std::string_view text) {
  std::set<std::pair<uint16_t, std::string>> found;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (auto port = parse_line(line)) found.insert({port->port, port->address});
  }
  std::vector<ListeningPort> ports;
  for (const auto& [port, address] : found) ports.push_back({port, address});
  return ports;
}

Result<void> list_ports(FileWire& wire) {
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    auto text = read_file(table, kMaxTableBytes);
    // There is no second one in a kernel without IPv6.
    if (!text && text.error().system_errno() == ENOENT) continue;
    if (!text) return file_error(std::max(1, text.error().system_errno()), "read", table);
    for (const ListeningPort& port : parse_listening_ports(*text))
      ATOLL_TRY_VOID(wire.send(encode_record(port)));
  }
  return {};
}

}  // namespace atl::agent
