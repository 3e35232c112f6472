// A signed receipt as a file has it, and the check of its signature.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace atl::cli {

// The receipt inside, if it is signed with this key (base 64, as in receipt.pub) and its readable
// part is what was signed.
Result<boost::json::object> verify_receipt(std::string_view text, std::string_view public_key);

}  // namespace atl::cli
