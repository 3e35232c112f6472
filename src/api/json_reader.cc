#include "api/json_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>

namespace atl::api {

namespace json = boost::json;

namespace {

constexpr size_t kMaxDepth = 32;

Error bad_json(std::string message) {
  return Error(Code::kInvalid, std::move(message)).with_reason("invalid_json");
}

// Notes duplicate keys, which json::parse would silently resolve to the last one.
// tidy: allow(public methods) Boost.JSON prescribes them.
struct DuplicateFinder {
  static constexpr size_t max_object_size = 100'000;
  static constexpr size_t max_array_size = 100'000;
  static constexpr size_t max_key_size = 1 << 16;
  static constexpr size_t max_string_size = size_t{1} << 26;

  std::vector<std::set<std::string, std::less<>>> keys;
  std::string partial;
  std::string duplicate;

  using Code = json::error_code;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) {
    keys.emplace_back();
    return true;
  }
  bool on_object_end(size_t, Code&) {
    keys.pop_back();
    return true;
  }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(size_t, Code&) { return true; }
  bool on_key_part(json::string_view part, size_t, Code&) {
    partial.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, size_t, Code&) {
    partial.append(part.data(), part.size());
    if (!keys.back().insert(partial).second && duplicate.empty()) duplicate = partial;
    partial.clear();
    return true;
  }
  bool on_string_part(json::string_view, size_t, Code&) { return true; }
  bool on_string(json::string_view, size_t, Code&) { return true; }
  bool on_number_part(json::string_view, Code&) { return true; }
  bool on_int64(int64_t, json::string_view, Code&) { return true; }
  bool on_uint64(uint64_t, json::string_view, Code&) { return true; }
  bool on_double(double, json::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(json::string_view, Code&) { return true; }
  bool on_comment(json::string_view, Code&) { return true; }
};

}  // namespace

Result<json::object> parse_object(std::string_view body) {
  if (body.empty()) return bad_json("the request has no body; send a JSON object");
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  json::basic_parser<DuplicateFinder> finder(options);
  size_t used = finder.write_some(false, body.data(), body.size(), error);
  if (error) return bad_json("the body is not valid JSON: " + error.message());
  if (body.find_first_not_of(" \t\r\n", used) != body.npos)
    return bad_json("the body goes on after its JSON value");
  if (!finder.handler().duplicate.empty())
    return Error(bad_json("the body has a key twice")).with_field(finder.handler().duplicate);
  json::value value = json::parse(body, error, {}, options);
  if (error) return bad_json("the body is not valid JSON: " + error.message());
  if (!value.is_object()) return bad_json("the body must be a JSON object");
  return std::move(value.as_object());
}

ObjectReader::ObjectReader(const json::object& object, std::string prefix,
                           std::vector<std::string> taken_before)
    : object_(object), prefix_(std::move(prefix)), asked_(std::move(taken_before)) {}

void ObjectReader::refuse(std::string_view name, std::string message, std::string_view reason) {
  if (error_) return;
  std::string field = prefix_ + std::string(name);
  error_ = Error(Code::kInvalid, field + " " + message).with_reason(reason).with_field(field);
}

bool ObjectReader::is_null(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  return value && value->is_null();
}

void ObjectReader::adopt(Error error) {
  if (!error_) error_ = std::move(error);
}

const json::value* ObjectReader::take(std::string_view name) {
  asked_.emplace_back(name);
  const json::value* value = object_.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

std::optional<std::string> ObjectReader::check_text(std::string_view name, const json::value& value,
                                                    size_t most_bytes) {
  if (!value.is_string()) {
    refuse(name, "must be a string");
    return std::nullopt;
  }
  const json::string& text = value.get_string();
  if (text.size() > most_bytes) {
    refuse(name, "is longer than " + std::to_string(most_bytes) + " bytes");
    return std::nullopt;
  }
  if (text.find('\0') != json::string::npos) {
    refuse(name, "must not contain a NUL character");
    return std::nullopt;
  }
  return std::string(text);
}

std::string ObjectReader::text(std::string_view name, size_t most_bytes) {
  auto value = optional_text(name, most_bytes);
  if (!value) refuse(name, "is required", "missing_field");
  return value.value_or("");
}

std::optional<std::string> ObjectReader::optional_text(std::string_view name, size_t most_bytes) {
  const json::value* value = take(name);
  if (!value) return std::nullopt;
  return check_text(name, *value, most_bytes);
}

std::optional<bool> ObjectReader::optional_boolean(std::string_view name) {
  const json::value* value = take(name);
  if (!value) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  refuse(name, "must be true or false");
  return std::nullopt;
}

std::optional<uint64_t> ObjectReader::optional_integer(std::string_view name, uint64_t low,
                                                       uint64_t high) {
  const json::value* value = take(name);
  if (!value) return std::nullopt;
  json::error_code error;
  auto number = value->to_number<uint64_t>(error);
  if (!value->is_number() || value->is_double() || error || number < low || number > high) {
    refuse(name,
           "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return number;
}

std::optional<uint32_t> ObjectReader::optional_small(std::string_view name, uint32_t low,
                                                     uint32_t high) {
  auto number = optional_integer(name, low, high);
  if (!number) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

std::optional<uint32_t> ObjectReader::optional_thousandths(std::string_view name, uint32_t low,
                                                           uint32_t high) {
  const json::value* value = take(name);
  if (!value) return std::nullopt;
  json::error_code error;
  double number = value->is_number() ? value->to_number<double>(error) : -1;
  double thousandths = std::round(number * 1000);
  if (error || !(thousandths >= low && thousandths <= high)) {
    refuse(name, "must be a number from " + std::to_string(low / 1000.0) + " to " +
                     std::to_string(high / 1000));
    return std::nullopt;
  }
  return static_cast<uint32_t>(thousandths);
}

std::optional<std::vector<std::string>> ObjectReader::optional_texts(std::string_view name,
                                                                     size_t most,
                                                                     size_t most_bytes) {
  const json::value* value = take(name);
  if (!value) return std::nullopt;
  if (!value->is_array()) {
    refuse(name, "must be an array of strings");
    return std::nullopt;
  }
  if (value->get_array().size() > most) {
    refuse(name, "has more than " + std::to_string(most) + " elements");
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const json::value& element : value->get_array()) {
    std::string element_name = std::string(name) + "[" + std::to_string(texts.size()) + "]";
    texts.push_back(check_text(element_name, element, most_bytes).value_or(""));
  }
  return texts;
}

TextPairs ObjectReader::text_pairs(std::string_view name, size_t most, size_t most_bytes) {
  const json::object* object = optional_object(name);
  TextPairs pairs;
  if (!object) return pairs;
  if (object->size() > most) {
    refuse(name, "has more than " + std::to_string(most) + " entries");
    return pairs;
  }
  for (const auto& entry : *object) {
    std::string key(entry.key());
    auto value = check_text(std::string(name) + "." + key, entry.value(), most_bytes);
    if (key.empty() || key.size() > most_bytes || key.find('\0') != key.npos)
      refuse(name, "has a key that is empty, too long or contains NUL");
    pairs.emplace_back(std::move(key), value.value_or(""));
  }
  return pairs;
}

const json::object* ObjectReader::optional_object(std::string_view name) {
  const json::value* value = take(name);
  if (!value) return nullptr;
  if (value->is_object()) return &value->get_object();
  refuse(name, "must be an object");
  return nullptr;
}

Result<void> ObjectReader::settle() {
  if (error_) return std::move(*error_);
  return {};
}

Result<void> ObjectReader::finish() {
  for (const auto& entry : object_) {
    std::string_view key = entry.key();
    bool known = std::find(asked_.begin(), asked_.end(), key) != asked_.end();
    if (known) continue;
    std::string valid;
    for (const std::string& name : asked_) valid += (valid.empty() ? "" : ", ") + name;
    refuse(key, "is not a known field; known are: " + valid, "unknown_field");
  }
  if (error_) return *error_;
  return {};
}

}  // namespace atl::api
