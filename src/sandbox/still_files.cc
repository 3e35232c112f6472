#include "sandbox/still_files.h"

#include "agent/still_files.h"
#include "sandbox/file_call.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kWritingTime{60};
constexpr std::chrono::seconds kAnswerTime{60};
constexpr std::string_view kAbout = "have the files stand still";

Error refused() {
  return Error(Code::kUnsupported,
               "have the files stand still: the gVisor of this sandbox does not write them down; "
               "that of the template gvisor does")
      .with_reason("not_behind_this_wall");
}

}  // namespace

Task<Result<std::unique_ptr<StillFiles>>> StillFiles::begin(std::shared_ptr<Sandbox> sandbox) {
  if (sandbox->state() != State::kRunning) co_return not_running(*sandbox);
  agent::OpenControl open{agent::kStillFiles, std::nullopt};
  ATOLL_CO_TRY(std::unique_ptr<Channel> channel, sandbox->channels().open_control(open));
  std::unique_ptr<StillFiles> still(new StillFiles(sandbox, std::move(channel)));
  ATOLL_CO_TRY_VOID(co_await still->expect(agent::kIsStill, kWritingTime));
  co_return still;
}

Task<Result<void>> StillFiles::end() {
  SteadyTime deadline = std::chrono::steady_clock::now() + kAnswerTime;
  std::string_view kept = "k";
  ATOLL_CO_TRY_VOID(co_await channel_->write(kept, deadline));
  co_return co_await expect(agent::kGoesOn, kAnswerTime);
}

Task<Result<void>> StillFiles::expect(std::string_view word, std::chrono::seconds patience) {
  SteadyTime deadline = std::chrono::steady_clock::now() + patience;
  std::string said;
  while (said.size() < word.size()) {
    auto bytes = co_await channel_->read(deadline);
    if (!bytes && bytes.error().system_errno() != 0)
      co_return file_error(bytes.error().system_errno(), kAbout);
    if (!bytes && bytes.error().code() == Code::kTimeout) co_return file_error(ETIMEDOUT, kAbout);
    if (!bytes) co_return std::move(bytes).error();
    if (bytes->empty()) co_return file_error(ETIMEDOUT, kAbout);
    said += *bytes;
    if (said == agent::kCannot) co_return refused();
  }
  if (said != word) co_return bad_answer("is malformed");
  co_return Result<void>();
}

}  // namespace atl::sandbox
