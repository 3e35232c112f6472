#include "sandbox/not_carried.h"

#include <set>
#include <sstream>

namespace atl::sandbox {

namespace {

struct Word {
  NotCarried::What what;
  std::string_view text;
};
constexpr Word kWords[] = {{NotCarried::What::kExec, "exec"},
                           {NotCarried::What::kContextState, "context"},
                           {NotCarried::What::kVolume, "volume"}};

}  // namespace

std::string encode_not_carried(const std::vector<NotCarried>& left) {
  std::string text;
  for (const NotCarried& one : left)
    for (const Word& word : kWords)
      if (word.what == one.what) text += std::string(word.text) + " " + one.id + "\n";
  return text;
}

std::vector<NotCarried> decode_not_carried(std::string_view text) {
  std::vector<NotCarried> left;
  std::istringstream lines{std::string(text)};
  for (std::string what, id; lines >> what >> id;)
    for (const Word& word : kWords)
      if (word.text == what) left.push_back({word.what, id});
  return left;
}

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
