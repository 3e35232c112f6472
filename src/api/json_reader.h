// ObjectReader: takes a JSON object apart strictly. Each call names a field and says what it must
// be; the first thing that does not fit is remembered, and finish() also refuses fields that nobody
// asked for.
//
//   ObjectReader reader(object);
//   request.template_name = reader.text("template", 64);
//   request.ttl_ms = reader.optional_integer("ttl_ms", 1, kMaxTtlMs);
//   ATOLL_TRY_VOID(reader.finish());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace atl::api {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// Parses a body that must be one JSON object: UTF-8, at most 32 levels deep, no duplicate keys.
Result<boost::json::object> parse_object(std::string_view body);

class ObjectReader {
 public:
  // `prefix` names the object in messages: "limits.". `taken_before` are fields that the object may
  // have and that somebody else has taken out of it: an error that lists the fields has them too.
  explicit ObjectReader(const boost::json::object& object, std::string prefix = "",
                        std::vector<std::string> taken_before = {});

  std::string text(std::string_view name, size_t most_bytes);
  std::optional<std::string> optional_text(std::string_view name, size_t most_bytes);
  std::optional<bool> optional_boolean(std::string_view name);
  std::optional<uint64_t> optional_integer(std::string_view name, uint64_t low, uint64_t high);
  std::optional<uint32_t> optional_small(std::string_view name, uint32_t low, uint32_t high);
  // A number with up to three decimals, times 1000.
  std::optional<uint32_t> optional_thousandths(std::string_view name, uint32_t low, uint32_t high);
  std::optional<std::vector<std::string>> optional_texts(std::string_view name, size_t most,
                                                         size_t most_bytes);
  // An object whose values are all strings.
  TextPairs text_pairs(std::string_view name, size_t most, size_t most_bytes);
  const boost::json::object* optional_object(std::string_view name);

  bool has(std::string_view name) const { return object_.contains(name); }
  bool is_null(std::string_view name) const;
  void refuse(std::string_view name, std::string message,
              std::string_view reason = "invalid_field");
  // Takes over the error of a nested object's reader.
  void adopt(Error error);
  Result<void> finish();
  // The same, but lets fields be that nobody asked for: of requests whose shape is not ours.
  Result<void> settle();

 private:
  const boost::json::value* take(std::string_view name);
  std::optional<std::string> check_text(std::string_view name, const boost::json::value& value,
                                        size_t most_bytes);

  const boost::json::object& object_;
  std::string prefix_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

}  // namespace atl::api
