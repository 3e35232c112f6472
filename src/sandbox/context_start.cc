#include "sandbox/context_start.h"

namespace atl::sandbox {

Task<Result<std::shared_ptr<Context>>> start_context(std::shared_ptr<Sandbox> sandbox,
                                                     ContextRequest request) {
  if (sandbox->state() != State::kRunning) co_return not_running(*sandbox);
  sandbox->lifetime().touch();
  auto created =
      co_await sandbox->contexts().create(sandbox, std::move(request), limits_of(sandbox->row()));
  sandbox->lifetime().touch();
  co_return created;
}

Task<Result<std::shared_ptr<ContextRun>>> start_run(std::shared_ptr<Sandbox> sandbox,
                                                    std::shared_ptr<Context> context,
                                                    RunRequest request) {
  if (sandbox->state() != State::kRunning) co_return not_running(*sandbox);
  sandbox->lifetime().touch();
  co_return co_await context->submit(std::move(request));
}

}  // namespace atl::sandbox
