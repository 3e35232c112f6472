// What a fork, a rollback or a pause without memory leaves behind, as JSON.
#pragma once

#include <vector>

#include <boost/json/array.hpp>

#include "sandbox/not_carried.h"

namespace atl::api::v1 {

boost::json::array not_carried_json(const std::vector<sandbox::NotCarried>& left);

}  // namespace atl::api::v1
