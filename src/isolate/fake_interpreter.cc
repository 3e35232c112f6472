#include "isolate/fake_interpreter.h"

#include <utility>

namespace atl::isolate {

void FakeInterpreter::tell(std::string_view input) {
  input_ += input;
  for (size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
    take(std::string_view(input_).substr(0, end));
    input_.erase(0, end + 1);
  }
}

void FakeInterpreter::take(std::string_view line) {
  std::string_view word = line.substr(0, line.find('\t'));
  if (word == "start") speech_ += "ready\tfake\tbegun\n";
  if (word != "run") return;
  line.remove_prefix(word.size() + 1);
  run_ = line.substr(0, line.find('\t'));
  line.remove_prefix(run_.size() + 1);
  has_begun_ = false;
  std::string_view code = line.substr(0, line.find('\t'));
  if (code == "slow") return;
  begin();
  if (code != "loop") speech_ += "end\t" + std::exchange(run_, {}) + "\tok\n";
}

void FakeInterpreter::begin() {
  if (run_.empty() || std::exchange(has_begun_, true)) return;
  speech_ += "begun\t" + run_ + "\n";
}

void FakeInterpreter::interrupt() {
  if (!run_.empty() && has_begun_) speech_ += "end\t" + std::exchange(run_, {}) + "\tinterrupted\n";
}

}  // namespace atl::isolate
