// Structured log: one JSON object a line on standard error, with time, level, process, message and
// fields. Values are escaped, so a program's output cannot forge a record. Never pass a key, a
// token, an environment or a program's bytes as a value.
//
//   log_info("sandbox ready", {{"sandbox", id.view()}, {"launch_us", micros}});
//
// Thread-safe: one write(2) per record.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl {

enum class LogLevel : unsigned char { kDebug, kInfo, kWarning, kError };

struct LogField {
  LogField(std::string_view field_name, std::string_view field_value)
      : name(field_name), value(field_value) {}
  LogField(std::string_view field_name, const char* field_value)
      : name(field_name), value(field_value) {}
  LogField(std::string_view field_name, std::integral auto number)
      : name(field_name), value(std::to_string(number)), is_number(true) {}
  LogField(const Error& error) : name("error"), value(error.message()) {}

  std::string_view name;
  std::string value;
  bool is_number = false;
};

using LogFields = std::initializer_list<LogField>;

// Called once by main(), before threads exist.
void configure_log(std::string_view process, LogLevel least);

void log(LogLevel level, std::string_view message, LogFields fields = {});
inline void log_debug(std::string_view m, LogFields f = {}) { log(LogLevel::kDebug, m, f); }
inline void log_info(std::string_view m, LogFields f = {}) { log(LogLevel::kInfo, m, f); }
inline void log_warning(std::string_view m, LogFields f = {}) { log(LogLevel::kWarning, m, f); }
inline void log_error(std::string_view m, LogFields f = {}) { log(LogLevel::kError, m, f); }

// The record as text, without the newline; exposed for its test.
std::string format_record(LogLevel level, std::string_view message, LogFields fields);

// JSON string escaping, also of bytes that are not UTF-8 (each becomes \ufffd).
void append_json_string(std::string& out, std::string_view text);

}  // namespace atl
