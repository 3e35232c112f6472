// FakeInterpreter: the interpreter of a context as the real ones behave towards atolld (speech:
// sandbox/speech.h). It knows three runs: `slow` is read and begins on SIGCONT only, `loop`
// begins at once, and both run until they are interrupted; all else ends at once. As with the real
// ones an interrupt is lost unless a run has begun.
#pragma once

#include <string>
#include <string_view>

namespace atl::isolate {

class FakeInterpreter {
 public:
  // Bytes of its input.
  void tell(std::string_view input);
  void begin();
  void interrupt();
  // All that it has said.
  const std::string& speech() const { return speech_; }

 private:
  void take(std::string_view line);

  std::string input_ = {}, speech_ = {};
  std::string run_ = {};  // its number; empty while there is none
  bool has_begun_ = false;
};

}  // namespace atl::isolate
