// Ids are types, made only by drawing fresh ones or by parsing. They contain nothing but lower-case
// letters and digits, so an id can stand in a path, a cgroup name and a DNS label as it is.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atl {

// Fills from the kernel's generator; cannot fail on a supported kernel.
void fill_random(std::span<unsigned char> bytes);

// `s` followed by 19 characters of base 32: 95 random bits, 20 bytes.
class SandboxId {
 public:
  static constexpr size_t kLength = 20;

  static SandboxId draw();
  static std::optional<SandboxId> parse(std::string_view text);

  std::string_view view() const { return {text_.data(), text_.size()}; }
  std::string string() const { return std::string(view()); }
  auto operator<=>(const SandboxId&) const = default;

 private:
  SandboxId() = default;
  std::array<char, kLength> text_;
};

// `e` and the number of the exec in its sandbox, counted from 1: also the name of its cgroup leaf.
class ExecId {
 public:
  static constexpr uint32_t kMax = 1'000'000'000;

  static std::optional<ExecId> from_number(uint32_t number);
  static std::optional<ExecId> parse(std::string_view text);

  uint32_t number() const { return number_; }
  std::string string() const { return "e" + std::to_string(number_); }
  auto operator<=>(const ExecId&) const = default;

 private:
  explicit ExecId(uint32_t number) : number_(number) {}
  uint32_t number_;
};

// `c` followed by 11 characters of base 32: a context of a sandbox.
class ContextId {
 public:
  static constexpr size_t kLength = 12;

  static ContextId draw();
  static std::optional<ContextId> parse(std::string_view text);

  std::string_view view() const { return {text_.data(), text_.size()}; }
  std::string string() const { return std::string(view()); }
  auto operator<=>(const ContextId&) const = default;

 private:
  ContextId() = default;
  std::array<char, kLength> text_;
};

// The SHA-256 that names an image: 64 hexadecimal digits as text.
class Digest {
 public:
  static constexpr size_t kBytes = 32;

  static Digest from_bytes(std::span<const unsigned char, kBytes> bytes);
  static std::optional<Digest> parse(std::string_view text);

  const std::array<unsigned char, kBytes>& bytes() const { return bytes_; }
  std::string string() const;
  auto operator<=>(const Digest&) const = default;

 private:
  Digest() = default;
  std::array<unsigned char, kBytes> bytes_;
};

std::string to_hex(std::span<const unsigned char> bytes);

// Random lower-case base-32 text, for request ids and keys.
std::string random_text(size_t length);

}  // namespace atl
