#include "base/log.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/utf8.h"

namespace atl {
namespace {

constexpr size_t kMaxValueBytes = 2048;

// Plain data without constructors: set once before threads exist, read-only afterwards.
constinit char g_process[24] = "atoll";
constinit LogLevel g_least = LogLevel::kInfo;

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      if (c < 0x20 || c == 0x7f) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
      } else {
        out += static_cast<char>(c);
      }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t length = utf8_sequence_length(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
    } else if (length == 1) {
      append_escaped(out, static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    } else if (text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) {
      // U+0080 to U+009F: terminals obey these as they do ESC sequences.
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(text[1]));
      text.remove_prefix(length);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  out += '"';
}

void configure_log(std::string_view process, LogLevel least) {
  size_t length = process.copy(g_process, sizeof g_process - 1);
  g_process[length] = '\0';
  g_least = least;
}

std::string format_record(LogLevel level, std::string_view message, LogFields fields) {
  std::string line = "{\"time\":\"";
  line += to_rfc3339(std::chrono::system_clock::now());
  line += "\",\"level\":\"";
  line += level_name(level);
  line += "\",\"process\":\"";
  line += g_process;
  line += "\",\"message\":";
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_json_string(line, field.name);
    line += ':';
    if (field.is_number) {
      line += field.value;
    } else {
      append_json_string(line, std::string_view(field.value).substr(0, kMaxValueBytes));
    }
  }
  line += '}';
  return line;
}

void log(LogLevel level, std::string_view message, LogFields fields) {
  if (level < g_least) return;
  std::string line = format_record(level, message, fields);
  line += '\n';
  // Standard error may be a closed pipe after a supervisor died; a lost record must not stop us.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace atl
