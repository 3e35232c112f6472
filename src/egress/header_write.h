// Writes the fields that a policy sets into the header of one request. What the program wrote under
// their names is taken out; everything else is copied byte by byte.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "egress/header_setting.h"
#include "egress/secret_swap.h"

namespace atl::egress {

// Null: there is no such secret.
using FindSecret = std::function<const Secret*(const std::string& name)>;

// `head` is whole and well-formed. Of the settings those count that name the host most exactly: by
// its name, else by the longest name that it is beneath; of two for one field, the later. kDenied
// with reason secret_not_bound: a value has a secret that is gone, that is bound elsewhere, or that
// would leave unencrypted. kDenied with reason bad_http: with all of it the head would be too long,
// or the program has a set field taken out on the way.
Result<std::string> write_headers(std::string_view head, const SwapPlace& place,
                                  std::span<const HeaderSetting> settings, const FindSecret& find);

}  // namespace atl::egress
