#include "api/e2b/envelope.h"

#include "api/e2b/failure.h"

namespace atl::api::e2b {

namespace {

constexpr size_t kHeadBytes = 5;
constexpr size_t kMaxMessageBytes = 1024 * 1024;
constexpr char kMessage = 0;
constexpr char kEnd = 2;

std::string enveloped(char flag, std::string_view text) {
  std::string bytes(1, flag);
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>((text.size() >> shift) & 0xff);
  return bytes.append(text);
}

size_t length_of(std::string_view head) {
  size_t length = 0;
  for (size_t i = 1; i < kHeadBytes; ++i)
    length = length << 8 | static_cast<unsigned char>(head[i]);
  return length;
}

}  // namespace

std::string envelope(std::string_view json_text) { return enveloped(kMessage, json_text); }

std::string end_of_stream(const Error* error) {
  std::string text = error ? "{\"error\":" + rpc_error_text(*error) + "}" : "{}";
  return enveloped(kEnd, text);
}

Result<std::optional<std::string>> Envelopes::next() {
  if (buffer_.size() < kHeadBytes) return std::optional<std::string>();
  size_t length = length_of(buffer_);
  if (buffer_[0] != kMessage || length > kMaxMessageBytes)
    return Error(Code::kInvalid, "a message of the stream is compressed or over 1 MiB")
        .with_reason("invalid_json");
  if (buffer_.size() < kHeadBytes + length) return std::optional<std::string>();
  std::string text = buffer_.substr(kHeadBytes, length);
  buffer_.erase(0, kHeadBytes + length);
  return std::optional(std::move(text));
}

std::optional<std::string_view> only_message(std::string_view body) {
  if (body.size() < kHeadBytes || body[0] != kMessage) return std::nullopt;
  size_t length = length_of(body);
  if (length != body.size() - kHeadBytes) return std::nullopt;
  return body.substr(kHeadBytes);
}

}  // namespace atl::api::e2b
