// TemplateBuild: one build as those who wait for it see it: its log so far, how far it is, how it
// ended. Lives on the io_context thread, held by shared_ptr because readers may outlast its entry.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "isolate/event.h"
#include "store/tenant.h"

namespace atl::sandbox {

// Of one build's log; what comes later is counted, not kept.
inline constexpr size_t kMaxBuildLogBytes = 2 << 20;
// The title of the step that each command of `setup` is.
inline constexpr std::string_view kSetupTitle = "setting up";

class TemplateBuild {
 public:
  enum class State : unsigned char { kWaiting, kRunning, kBuilt, kFailed };
  // A line of the log: where it ends, and when it came.
  struct Line {
    size_t end = 0;
    int64_t at_ms = 0;
  };
  struct Step {
    unsigned number = 0, of = 0;  // 0: not begun
    std::string title;
    unsigned command = 0;  // how many of `setup` have begun; one that failed is the last of them
  };

  TemplateBuild(boost::asio::any_io_executor executor, store::TenantId tenant, std::string name)
      : tenant_(tenant), name_(std::move(name)), changed_(std::move(executor)) {}

  store::TenantId tenant() const { return tenant_; }
  const std::string& name() const { return name_; }
  State state() const { return state_; }
  bool ended() const { return state_ == State::kBuilt || state_ == State::kFailed; }
  const std::string& log() const { return log_; }
  const std::vector<Line>& lines() const { return lines_; }
  const Step& step() const { return step_; }
  const std::optional<Error>& failure() const { return failure_; }
  const std::optional<Digest>& image() const { return image_; }
  // When it ended.
  std::chrono::steady_clock::time_point ended_at() const { return ended_at_; }

  // False when the waiting coroutine was cancelled.
  Task<bool> wait_changed() {
    return changed_.wait_until(std::chrono::steady_clock::time_point::max());
  }

  // For the one who builds. Pieces of the log break anywhere.
  void begin();
  void append(std::string_view piece);
  void set_built(const Digest& image);
  void set_failed(Error failure);

 private:
  void take_line();

  store::TenantId tenant_;
  std::string name_;
  State state_ = State::kWaiting;
  std::string log_;
  std::vector<Line> lines_;
  std::string line_;  // the one that is not whole yet
  Step step_;
  std::optional<Error> failure_;
  std::optional<Digest> image_;
  std::chrono::steady_clock::time_point ended_at_{};
  Event changed_;
};

std::string_view state_name(TemplateBuild::State state);

}  // namespace atl::sandbox
