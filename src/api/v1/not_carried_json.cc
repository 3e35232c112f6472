#include "api/v1/not_carried_json.h"

#include <boost/json/object.hpp>

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::NotCarried;

namespace {

struct Words {
  std::string_view what, why;
};

Words words_of(NotCarried::What what) {
  switch (what) {
    case NotCarried::What::kExec:
      return {"exec", "processes do not come along"};
    case NotCarried::What::kContextState:
      return {"context_state",
              "the interpreter starts again, with its language, cwd and variables"};
    case NotCarried::What::kVolume:
      break;
  }
  return {"volume", "volumes stay with the sandbox that has them"};
}

}  // namespace

json::array not_carried_json(const std::vector<NotCarried>& left) {
  json::array items;
  for (const NotCarried& one : left) {
    Words words = words_of(one.what);
    items.push_back(json::object{{"what", words.what}, {"id", one.id}, {"why", words.why}});
  }
  return items;
}

}  // namespace atl::api::v1
