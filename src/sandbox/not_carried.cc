#include "sandbox/not_carried.h"

#include <set>

namespace atl::sandbox {

Task<Result<std::vector<NotCarried>>> find_not_carried(Services& services,
                                                       std::shared_ptr<Sandbox> sandbox) {
  auto read = [id = sandbox->id()](store::Catalog& catalog) {
    return catalog.execs().all_running(id);
  };
  ATOLL_CO_TRY(auto rows, co_await services.ledger.run(read));
  std::vector<NotCarried> left;
  std::set<uint32_t> interpreters;
  for (const auto& context : sandbox->contexts().all()) {
    interpreters.insert(context->row().exec);
    left.push_back({NotCarried::What::kContextState, context->row().id.string()});
  }
  for (const store::ExecRow& row : rows)
    if (!interpreters.contains(row.id.number()))
      left.push_back({NotCarried::What::kExec, row.id.string()});
  co_return left;
}

}  // namespace atl::sandbox
