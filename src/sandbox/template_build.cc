#include "sandbox/template_build.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "builder/protocol.h"

namespace atl::sandbox {
namespace {

constexpr size_t kMaxLineBytes = 4096;

}  // namespace

std::string_view state_name(TemplateBuild::State state) {
  switch (state) {
    case TemplateBuild::State::kWaiting:
      return "waiting";
    case TemplateBuild::State::kRunning:
      return "running";
    case TemplateBuild::State::kBuilt:
      return "built";
    case TemplateBuild::State::kFailed:
      return "failed";
  }
  return "failed";
}

void TemplateBuild::begin() {
  state_ = State::kRunning;
  changed_.notify_all();
}

// Lines of the build's steps are facts, not text; whoever wrote them may lie, to his own harm.
void TemplateBuild::take_line() {
  std::string line = std::move(line_);
  line_.clear();
  Step step;
  int title = 0;
  if (line.starts_with(builder::kStepPrefix) &&
      sscanf(line.c_str(), "#step %2u/%2u %n", &step.number, &step.of, &title) == 2 && title > 0) {
    step.title = line.substr(static_cast<size_t>(title), 80);
    step.command = step_.command + (step.title == kSetupTitle ? 1 : 0);
    step_ = std::move(step);
    return;
  }
  size_t bytes = log_.size() + line.size() + lines_.size() * sizeof(Line);
  if (bytes >= kMaxBuildLogBytes) return;
  log_ += line + "\n";
  lines_.push_back({log_.size(), to_milliseconds(std::chrono::system_clock::now())});
}

void TemplateBuild::append(std::string_view piece) {
  for (char c : piece) {
    if (c == '\n' || line_.size() >= kMaxLineBytes) take_line();
    if (c != '\n') line_ += c;
  }
  changed_.notify_all();
}

void TemplateBuild::set_built(const Digest& image) {
  if (!line_.empty()) take_line();
  state_ = State::kBuilt;
  ended_at_ = std::chrono::steady_clock::now();
  image_ = image;
  changed_.notify_all();
}

void TemplateBuild::set_failed(Error failure) {
  if (!line_.empty()) take_line();
  state_ = State::kFailed;
  ended_at_ = std::chrono::steady_clock::now();
  failure_ = std::move(failure);
  changed_.notify_all();
}

}  // namespace atl::sandbox
