// Little-endian encoding of small messages: ByteWriter appends, ByteReader takes apart. A reader
// that runs past the end turns bad and gives zeros; check ok() once at the end, before using any
// value.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace atl {

class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void u8(uint8_t value) { raw(value); }
  void u16(uint16_t value) { raw(value); }
  void u32(uint32_t value) { raw(value); }
  void u64(uint64_t value) { raw(value); }
  void bytes(std::string_view value) { out_.append(value); }
  // A length (u32) and the bytes.
  void text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    bytes(value);
  }

 private:
  template <typename T>
  void raw(T value) {
    static_assert(std::is_unsigned_v<T>);
    char encoded[sizeof value];
    std::memcpy(encoded, &value, sizeof value);  // x86-64 and arm64 are little-endian
    out_.append(encoded, sizeof encoded);
  }
  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}

  uint8_t u8() { return raw<uint8_t>(); }
  uint16_t u16() { return raw<uint16_t>(); }
  uint32_t u32() { return raw<uint32_t>(); }
  uint64_t u64() { return raw<uint64_t>(); }
  std::string_view bytes(size_t count) {
    if (in_.size() < count) return fail();
    std::string_view value = in_.substr(0, count);
    in_.remove_prefix(count);
    return value;
  }
  std::string_view text(size_t limit) {
    uint32_t count = u32();
    if (count > limit) return fail();
    return bytes(count);
  }
  std::string_view rest() { return bytes(in_.size()); }

  bool ok() const { return ok_; }
  // Everything was there and nothing is left over.
  bool done() const { return ok_ && in_.empty(); }

 private:
  std::string_view fail() {
    ok_ = false;
    in_ = {};
    return {};
  }
  template <typename T>
  T raw() {
    std::string_view encoded = bytes(sizeof(T));
    T value = 0;
    if (encoded.size() == sizeof value) std::memcpy(&value, encoded.data(), sizeof value);
    return value;
  }
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace atl
