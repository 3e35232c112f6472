#include "api/v1/not_carried_json.h"

#include <boost/json/object.hpp>

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::NotCarried;

json::array not_carried_json(const std::vector<NotCarried>& left) {
  json::array items;
  for (const NotCarried& one : left) {
    bool exec = one.what == NotCarried::What::kExec;
    json::object object;
    object["what"] = exec ? "exec" : "context_state";
    object["id"] = one.id;
    object["why"] = exec ? "processes do not come along"
                         : "the interpreter starts again, with its language, cwd and variables";
    items.push_back(std::move(object));
  }
  return items;
}

}  // namespace atl::api::v1
