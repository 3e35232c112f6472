// One GET over HTTPS by libcurl, which is known in the .cc only. Redirects are followed, never to
// plain HTTP and never with the authorization to another host.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::builder {

struct HttpGet {
  std::string url;  // http:// is followed only if it is asked for here
  std::vector<std::string> headers = {};
  std::string authorization = "";  // empty: none
};

struct HttpAnswer {
  long status;
  std::string challenge;  // WWW-Authenticate
};

// Gives the body of an answer with status 200 to `take`, and of no other.
using TakePart = std::function<Result<void>(std::string_view part)>;
Result<HttpAnswer> http_get(const HttpGet& request, const TakePart& take);

// For a query.
std::string percent_encode(std::string_view text);

}  // namespace atl::builder
