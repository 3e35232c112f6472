#include "api/e2b/files.h"

#include <algorithm>

#include "api/e2b/failure.h"
#include "api/e2b/file_upload.h"
#include "api/e2b/path.h"
#include "api/query.h"
#include "api/v1/file_content.h"

namespace atl::api::e2b {

using http::Method;
using sandbox::Sandbox;

namespace {

Error bad_user(std::string_view name) {
  return Error(Code::kDenied, "invalid username: '" + sandbox::shown(name) + "'")
      .with_reason("unauthenticated");
}

Result<std::string> user_parameter(const http::Request& request, const Sandbox& sandbox) {
  ATOLL_TRY(auto given, text_parameter("username", request));
  std::string user = given.value_or("");
  if (user.empty()) return sandbox.row().user;
  auto is_printable = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  bool sound =
      user.size() <= agent::kMaxUserBytes && std::all_of(user.begin(), user.end(), is_printable);
  if (!sound) return bad_user(user);
  return user;
}

Result<FileScope> scope_of(const Call& call, const Plane& plane) {
  ATOLL_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_TRY(std::string user, user_parameter(call.exchange.request(), *sandbox));
  return FileScope{sandbox::Files(std::move(sandbox), user), user};
}

// No worker runs for a user that is not there.
http::Task<Result<void>> check_user(FileScope& scope) {
  if (scope.user == "user" || scope.user == "root") co_return Result<void>();
  std::string root = "/";
  auto seen = co_await scope.files.stat(root);
  if (!seen) co_return bad_user(scope.user);
  co_return Result<void>();
}

http::Task<Reply> download(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, scope_of(call, plane));
  ATOLL_CO_TRY_VOID(co_await check_user(scope));
  ATOLL_CO_TRY(auto path, text_parameter("path", call.exchange.request()));
  ATOLL_CO_TRY(std::string resolved, resolve_path(path.value_or(""), scope.user));
  v1::FileTarget target{scope.files, resolved};
  auto sent = co_await v1::download_file(call, std::move(target));
  if (sent) co_return sent;
  const std::string& reason = sent.error().reason();
  if (reason == "file_not_found")
    co_return Error(Code::kNotFound, "path '" + resolved + "' does not exist")
        .with_reason("file_not_found");
  if (reason == "is_directory" || reason == "not_regular")
    co_return Error(Code::kInvalid, "path '" + resolved + "' is a directory")
        .with_reason("invalid_path");
  co_return sent;
}

http::Task<Reply> upload_file(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, scope_of(call, plane));
  ATOLL_CO_TRY_VOID(co_await check_user(scope));
  co_return co_await take_upload(call, std::move(scope));
}

http::Task<Reply> health(Call& call, Plane plane) {
  ATOLL_CO_TRY_VOID(running_sandbox(call, plane));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

void add_files_routes(Router& router, Plane plane) {
  auto make = [plane](Method method, const char* path, auto action, Needs needs) {
    Route route{method, std::string(kEnvd) + path,
                [plane, action](Call& call) { return action(call, plane); }};
    route.failure = control_failure;
    route.admit = [plane, needs](const http::Request& request,
                                 const std::vector<std::string>& parameters) {
      return admit(plane, needs, request, parameters);
    };
    return route;
  };
  Route reading = make(Method::kGet, "/files", download, Needs::kAccess);
  reading.time = Route::Time::kLong;
  router.add(std::move(reading));
  Route writing = make(Method::kPost, "/files", upload_file, Needs::kAccess);
  writing.body = Route::Body::kStream;
  router.add(std::move(writing));
  router.add(make(Method::kGet, "/health", health, Needs::kNothing));
}

}  // namespace atl::api::e2b
