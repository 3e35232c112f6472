// Calls of the Connect protocol: POST /<package>.<Service>/<Method> with JSON, answered by one
// message or by a stream of them.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "api/e2b/plane.h"
#include "api/router.h"
#include "base/clock.h"

namespace atl::api::e2b {

using RpcAction = http::Task<Reply> (*)(Call& call, Plane plane);

// `method`: "process.Process/List".
void add_unary(Router& router, Plane plane, std::string_view method, RouteAction action);
void add_unary(Router& router, Plane plane, std::string_view method, RpcAction action);
void add_streaming(Router& router, Plane plane, std::string_view method, RpcAction action);

// The message of a streaming call, which has one.
http::Task<Result<boost::json::object>> read_message(Call& call);

// What a client asked for about time: when the call is over, and how often it wants to hear that
// the server is there.
struct Patience {
  SteadyTime deadline = SteadyTime::max();
  std::chrono::seconds keepalive{90};
};
// nullopt: the call has no end of its own.
std::optional<std::chrono::milliseconds> timeout_of(const http::Request& request);
Patience patience_of(const http::Request& request);

// The user in whose name a call is made: that of `Authorization: Basic`, or who runs execs
// of the sandbox that name nobody.
Result<std::string> user_of(const http::Request& request, const sandbox::Sandbox& sandbox);

// The messages of an answer. A stream that is left without an end is cut off, from which clients
// learn that the sandbox has gone.
class RpcStream {
 public:
  explicit RpcStream(Call& call) : call_(call) {}
  http::Task<Result<void>> start(const boost::json::object& first);
  http::Task<Result<void>> send(const boost::json::object& message);
  http::Task<Result<void>> finish();
  http::Task<Result<void>> finish(const boost::json::object& last);
  http::Task<Result<void>> fail(const Error& error);

 private:
  Call& call_;
};

}  // namespace atl::api::e2b
