#include "egress/client_hello.h"

#include <cstdint>
#include <set>

namespace atl::egress {
namespace {

constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHello = 1;
constexpr size_t kMaxRecordBytes = 16 * 1024;
constexpr uint16_t kServerName = 0, kEncryptedHello = 0xfe0d, kEncryptedServerName = 0xffce;

Error malformed_hello(const char* what) {
  return Error(Code::kInvalid, std::string("hello: ") + what);
}

// Big-endian; turns bad instead of reading past the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint32_t number(size_t bytes) {
    uint32_t value = 0;
    for (char c : take(bytes)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view take(size_t bytes) {
    if (bytes > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }
  // A vector with a length of that many bytes before it.
  std::string_view vector(size_t length_bytes) { return take(number(length_bytes)); }
  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// Puts the handshake's bytes together. Empty while the first message is not complete.
Result<std::string> join_records(std::string_view bytes) {
  std::string joined;
  while (true) {
    if (!bytes.empty() && bytes[0] != kHandshakeRecord) return malformed_hello("not a handshake");
    if (bytes.size() >= 2 && bytes[1] != 3) return malformed_hello("not a version of TLS");
    if (bytes.size() < 5) return std::string();
    Reader reader(bytes.substr(3, 2));
    size_t length = reader.number(2);
    if (length == 0 || length > kMaxRecordBytes) return malformed_hello("bad length of a record");
    bool complete = bytes.size() >= 5 + length;
    joined += bytes.substr(5, length);
    if (!joined.empty() && joined[0] != kClientHello) return malformed_hello("another message");
    if (joined.size() >= 4) {
      size_t whole = 4 + Reader(std::string_view(joined).substr(1, 3)).number(3);
      if (whole > kMaxHelloBytes) return malformed_hello("too long");
      if (joined.size() > whole) return malformed_hello("more in its record");
      if (joined.size() == whole) return joined;
    }
    if (!complete) return std::string();
    bytes.remove_prefix(5 + length);
  }
}

Result<std::string> read_server_name(std::string_view extension) {
  Reader reader(extension);
  Reader list(reader.vector(2));
  uint32_t type = list.number(1);
  std::string_view name = list.vector(2);
  // One name of the one kind there is.
  if (!reader.ok() || !reader.empty() || !list.ok() || !list.empty() || type != 0 || name.empty())
    return malformed_hello("bad server_name");
  return std::string(name);
}

Result<void> read_extensions(std::string_view bytes, ClientHello& hello) {
  Reader reader(bytes);
  std::set<uint32_t> seen;
  while (reader.ok() && !reader.empty()) {
    uint32_t type = reader.number(2);
    std::string_view extension = reader.vector(2);
    if (!reader.ok()) return malformed_hello("bad extension");
    if (!seen.insert(type).second) return malformed_hello("an extension twice");
    if (type == kEncryptedHello || type == kEncryptedServerName) hello.is_encrypted = true;
    if (type != kServerName) continue;
    ATOLL_TRY(hello.server_name, read_server_name(extension));
  }
  return {};
}

}  // namespace

Result<std::optional<ClientHello>> parse_client_hello(std::string_view bytes) {
  ATOLL_TRY(std::string message, join_records(bytes));
  if (message.empty()) {
    if (bytes.size() >= kMaxHelloBytes) return malformed_hello("too long");
    return std::optional<ClientHello>();
  }
  Reader reader(std::string_view(message).substr(4));
  reader.take(2 + 32);  // version, random
  reader.vector(1);     // session
  reader.vector(2);     // cipher suites
  reader.vector(1);     // compression
  if (!reader.ok()) return malformed_hello("bad fields");
  ClientHello hello;
  if (reader.empty()) return std::optional(hello);
  std::string_view extensions = reader.vector(2);
  if (!reader.ok() || !reader.empty()) return malformed_hello("bad extensions");
  ATOLL_TRY_VOID(read_extensions(extensions, hello));
  return std::optional(hello);
}

}  // namespace atl::egress
