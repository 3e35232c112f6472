// From the facts that the warden wrote down to the receipt that users get: one line of JSON. Long
// values ("blob:" and hexadecimal digits) become their SHA-256.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::notary {

// {"version":1,"sandbox":...,"facts":[{"name":...,"outside":...,"inside":...}]}; null: that side
// cannot see it.
Result<std::string> make_document(std::string_view facts);

}  // namespace atl::notary
