// What a sandbox does not take along when its files go on somewhere else.
#pragma once

#include <memory>
#include <string>
#include <string_view>
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

// As text for a row, and back.
std::string encode_not_carried(const std::vector<NotCarried>& left);
std::vector<NotCarried> decode_not_carried(std::string_view text);
// What such a text ends with if nothing is to be kept of the sandbox when it is deleted.
inline constexpr std::string_view kNoArtifacts = "artifacts none\n";

}  // namespace atl::sandbox
