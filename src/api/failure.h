// The one shape of error, for programs and for language models:
//   {"error":{"code","message","field"?,"cause","remedy","request_id"}}
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::api {

// A domain error as an answer: the status follows from its code and reason, the remedy from its
// reason. `cause` of a failure inside the platform is logged, not shown.
http::Response failure_response(const Error& error, std::string_view request_id);

// The status of such an answer, and what could be done about it (may be empty).
int failure_status(const Error& error);
std::string_view failure_remedy(const Error& error);

// A refusal of the router itself, by its status.
http::Response refusal_response(int status, std::string_view code, std::string_view message,
                                std::string_view request_id);

}  // namespace atl::api
