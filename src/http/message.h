// HTTP messages as plain values. No Beast type appears in a header of this folder, so that only its
// own .cc files pay for compiling it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atl::http {

enum class Method : uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kOther };

std::string_view method_name(Method method);

// For ASCII, as header names and tokens are.
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Header fields in order; names compare without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  void add(std::string name, std::string value);
  // The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  size_t count(std::string_view name) const;
  // Whether a field of that name has `token` in its comma-separated list.
  bool lists(std::string_view name, std::string_view token) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  Method method = Method::kOther;
  std::string target;  // as received
  std::string path;    // the target before '?', still percent-encoded
  std::string query;   // after '?', still percent-encoded
  Headers headers;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// Decodes %XX; nothing if an escape is malformed or the result contains NUL or is not UTF-8.
std::optional<std::string> percent_decode(std::string_view text);

// The decoded value of one query parameter, if it is there exactly once and well-formed.
std::optional<std::string> query_parameter(std::string_view query, std::string_view name);
// The decoded values of one that may be there several times; nothing if any is malformed.
std::optional<std::vector<std::string>> query_parameters(std::string_view query,
                                                         std::string_view name);

}  // namespace atl::http
