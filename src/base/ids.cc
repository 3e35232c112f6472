#include "base/ids.h"

#include <errno.h>
#include <sys/random.h>

#include <charconv>

#include "base/check.h"

namespace atl {
namespace {

constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view kHex = "0123456789abcdef";

}  // namespace

void fill_random(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    ssize_t count = getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    ATOLL_CHECK(count > 0);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::string random_text(size_t length) {
  std::string text(length, '\0');
  fill_random({reinterpret_cast<unsigned char*>(text.data()), text.size()});
  for (char& c : text) c = kBase32[static_cast<unsigned char>(c) % kBase32.size()];
  return text;
}

SandboxId SandboxId::draw() {
  auto id = parse("s" + random_text(kLength - 1));
  ATOLL_CHECK(id.has_value());
  return *id;
}

std::optional<SandboxId> SandboxId::parse(std::string_view text) {
  if (text.size() != kLength || text[0] != 's') return std::nullopt;
  if (text.substr(1).find_first_not_of(kBase32) != text.npos) return std::nullopt;
  SandboxId id;
  text.copy(id.text_.data(), kLength);
  return id;
}

std::optional<ExecId> ExecId::from_number(uint32_t number) {
  if (number == 0 || number > kMax) return std::nullopt;
  return ExecId(number);
}

std::optional<ExecId> ExecId::parse(std::string_view text) {
  if (text.size() < 2 || text.size() > 11 || text[0] != 'e' || text[1] == '0') return std::nullopt;
  uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return from_number(number);
}

ContextId ContextId::draw() {
  auto id = parse("c" + random_text(kLength - 1));
  ATOLL_CHECK(id.has_value());
  return *id;
}

std::optional<ContextId> ContextId::parse(std::string_view text) {
  if (text.size() != kLength || text[0] != 'c') return std::nullopt;
  if (text.substr(1).find_first_not_of(kBase32) != text.npos) return std::nullopt;
  ContextId id;
  text.copy(id.text_.data(), kLength);
  return id;
}

Digest Digest::from_bytes(std::span<const unsigned char, kBytes> bytes) {
  Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.bytes_.begin());
  return digest;
}

std::optional<Digest> Digest::parse(std::string_view text) {
  if (text.size() != 2 * kBytes) return std::nullopt;
  Digest digest;
  for (size_t i = 0; i < kBytes; ++i) {
    size_t high = kHex.find(text[2 * i]);
    size_t low = kHex.find(text[2 * i + 1]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    digest.bytes_[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return digest;
}

std::string Digest::string() const { return to_hex(bytes_); }

std::string to_hex(std::span<const unsigned char> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace atl
