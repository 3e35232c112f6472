#include "api/e2b/result_json.h"

#include <span>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "api/json_reply.h"
#include "base/utf8.h"

namespace atl::api::e2b {

namespace json = boost::json;

namespace {

constexpr std::string_view kFrameType = "application/vnd.atoll.dataframe+json";
constexpr size_t kMaxJsonDepth = 32;

struct Named {
  std::string_view type, name;
};
constexpr Named kTexts[] = {
    {"text/html", "html"},    {"text/markdown", "markdown"},
    {"image/svg+xml", "svg"}, {"image/png", "png"},
    {"image/jpeg", "jpeg"},   {"application/pdf", "pdf"},
    {"text/latex", "latex"},  {"application/javascript", "javascript"},
};
constexpr Named kObjects[] = {
    {"application/json", "json"},
    {"application/vnd.atoll.chart+json", "chart"},
};

std::string_view name_of(std::string_view type, std::span<const Named> names) {
  for (const Named& named : names)
    if (named.type == type) return named.name;
  return {};
}

json::value parsed(const std::string& text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  return error ? json::value(text) : value;
}

// The text of a string is shown without the quotes of its representation.
std::string plain_text(const std::string& text) {
  bool quoted = text.size() >= 2 && text.front() == text.back() &&
                (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// {"columns", "index", "data": rows} as {column: [values]}.
json::object columns_of(const json::value& frame) {
  json::object columns;
  if (!frame.is_object()) return columns;
  const json::value* names = frame.get_object().if_contains("columns");
  const json::value* rows = frame.get_object().if_contains("data");
  if (!names || !names->is_array() || !rows || !rows->is_array()) return columns;
  size_t index = 0;
  for (const json::value& name : names->get_array()) {
    json::array values;
    for (const json::value& row : rows->get_array())
      if (row.is_array() && row.get_array().size() > index)
        values.push_back(row.get_array()[index]);
    std::string key = name.is_string() ? std::string(name.get_string()) : json_text(name);
    columns[key] = std::move(values);
    ++index;
  }
  return columns;
}

void append_escaped(std::string& out, std::string_view character) {
  auto lead = static_cast<unsigned char>(character[0]);
  uint32_t point = lead & (0xffu >> (character.size() + 1));
  for (char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  if (point < 0x10000) {
    out += fmt::format("\\u{:04x}", point);
    return;
  }
  point -= 0x10000;
  out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (point >> 10), 0xdc00 + (point & 0x3ff));
}

}  // namespace

json::object result_line(const sandbox::RunResult& result) {
  json::object line;
  line["type"] = "result";
  line["is_main_result"] = result.is_main;
  json::object extra;
  for (const auto& [type, data] : result.data) {
    if (type == "text/plain") {
      line["text"] = plain_text(data);
    } else if (auto text = name_of(type, kTexts); !text.empty()) {
      line[text] = data;
    } else if (auto object = name_of(type, kObjects); !object.empty()) {
      line[object] = parsed(data);
    } else if (type == kFrameType) {
      line["data"] = columns_of(parsed(data));
    } else {
      extra[type] = data;
    }
  }
  if (!extra.empty()) line["extra"] = std::move(extra);
  return line;
}

// Outside of strings JSON has ASCII only, so every other character may be escaped.
std::string ascii_line(const json::value& value) {
  std::string text = json_text(value);
  std::string line;
  line.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    size_t length = std::max<size_t>(1, utf8_sequence_length(std::string_view(text).substr(at)));
    if (length == 1)
      line += text[at];
    else
      append_escaped(line, std::string_view(text).substr(at, length));
    at += length;
  }
  return line + "\n";
}

}  // namespace atl::api::e2b
