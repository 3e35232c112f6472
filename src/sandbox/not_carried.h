// What a sandbox does not take along when its files go on somewhere else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

struct NotCarried {
  enum class What : unsigned char { kExec, kContextState, kVolume };
  What what;
  std::string id;  // or the name of a volume
};

// Of a sandbox as it is now.
Task<Result<std::vector<NotCarried>>> find_not_carried(Services& services,
                                                       std::shared_ptr<Sandbox> sandbox);

}  // namespace atl::sandbox
