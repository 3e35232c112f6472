#include "http/message.h"

#include <algorithm>

#include "base/utf8.h"

namespace atl::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A query separates words by '+', as forms and most SDKs encode them.
std::optional<std::string> decode_query_text(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decode(spaced);
}

// Strangers send thousands of pairs: only a key that has an escape is decoded.
bool is_named(std::string_view key, std::string_view name) {
  if (key.find_first_of("%+") == key.npos) return key == name;
  std::optional<std::string> decoded = decode_query_text(key);
  return decoded && *decoded == name;
}

}  // namespace

std::string_view method_name(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
    case Method::kOptions:
      return "OPTIONS";
    case Method::kOther:
      break;
  }
  return "OTHER";
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

void Headers::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (equal_ignoring_case(field, name)) return value;
  }
  return std::nullopt;
}

size_t Headers::count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [name](const auto& field) { return equal_ignoring_case(field.first, name); }));
}

bool Headers::lists(std::string_view name, std::string_view token) const {
  for (const auto& [field, value] : fields_) {
    if (!equal_ignoring_case(field, name)) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
      while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
      if (equal_ignoring_case(item, token)) return true;
    }
  }
  return false;
}

std::optional<std::string> percent_decode_bytes(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    int high = hex_digit(text[i + 1]);
    int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos) return std::nullopt;
  return decoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::optional<std::string> decoded = percent_decode_bytes(text);
  if (!decoded || !is_utf8(*decoded)) return std::nullopt;
  return decoded;
}

std::optional<std::vector<std::string>> query_parameters(std::string_view query,
                                                         std::string_view name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    size_t equals = pair.find('=');
    if (!is_named(pair.substr(0, equals), name)) continue;
    auto value = decode_query_text(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::optional<std::string> query_parameter(std::string_view query, std::string_view name) {
  auto values = query_parameters(query, name);
  if (!values || values->size() != 1) return std::nullopt;
  return std::move(values->front());
}

}  // namespace atl::http
