#include "sandbox/context_start.h"

#include "sandbox/pause.h"

namespace atl::sandbox {

Task<Result<std::shared_ptr<Context>>> start_context(std::shared_ptr<Sandbox> sandbox,
                                                     ContextRequest request) {
  ATOLL_CO_TRY_VOID(co_await Pause::wake(sandbox));
  sandbox->lifetime().touch();
  auto created =
      co_await sandbox->contexts().create(sandbox, std::move(request), limits_of(sandbox->row()));
  sandbox->lifetime().touch();
  co_return created;
}

Task<Result<std::shared_ptr<ContextRun>>> start_run(std::shared_ptr<Sandbox> sandbox,
                                                    std::shared_ptr<Context> context,
                                                    RunRequest request) {
  ATOLL_CO_TRY_VOID(co_await Pause::begin_step(sandbox, "before a run"));
  co_return co_await context->submit(std::move(request));
}

}  // namespace atl::sandbox
