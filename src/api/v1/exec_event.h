// What a program prints, cut into server-sent events: a character of UTF-8 is never cut in two, and
// bytes that are not UTF-8 come in base 64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/exec_output.h"

namespace atl::api::v1 {

// How far both streams have been read; the id of an event is where to go on after it.
struct OutputPosition {
  uint64_t standard_output = 0, standard_error = 0;

  uint64_t& of(agent::Stream stream) {
    return stream == agent::Stream::kStdout ? standard_output : standard_error;
  }
  std::string id() const;
};
// "<stdout offset>-<stderr offset>".
std::optional<OutputPosition> parse_position(std::string_view text);

// How many of the bytes to send now: all, but for a character at their end that more bytes could
// complete.
size_t whole_characters(std::string_view bytes);

// {"text":"…"}, or {"base64":"…"} if they are not UTF-8.
std::string output_data(std::string_view bytes);

}  // namespace atl::api::v1
