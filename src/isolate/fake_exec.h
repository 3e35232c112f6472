// FakeExec: one exec of a fake agent: what its program has printed and said, and how it ended. The
// programs are listed in fake_driver.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/protocol.h"
#include "isolate/fake_interpreter.h"

namespace atl::isolate {

// The byte at `offset` of what `spam` prints.
char spam_byte(uint64_t offset);

struct FakeExec {
  std::string stdout_bytes = {};
  std::string stderr_bytes = {};
  std::optional<agent::Exit> exit = {};
  // Of those that read their input.
  enum class Reading : unsigned char { kNothing, kCopies, kRefuses } reading = Reading::kNothing;
  uint64_t input_taken = 0;
  bool input_closed = true;
  size_t stdout_sent = 0;
  std::optional<FakeInterpreter> interpreter = {};  // of a program that speaks
  size_t speech_sent = 0;

  static FakeExec run(const agent::Start& start);
  void take_input(uint64_t offset, std::string_view data);
  void take_signal(uint8_t number);
  void end(agent::Ending ending, uint8_t status, agent::Cause cause);
};

}  // namespace atl::isolate
