#include "api/v1/artifacts.h"

#include "api/json_reply.h"
#include "api/v1/file_content.h"
#include "api/v1/file_json.h"
#include "api/v1/sandboxes.h"
#include "base/file.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

Error no_such_artifact() {
  return Error(Code::kNotFound, "there is no such artifact").with_reason("artifact_not_found");
}

// What was kept of a sandbox that is gone; an error if nothing was, the same as for no sandbox.
Result<std::vector<store::Artifact>> kept_artifacts(const Call& call, Sandboxes& sandboxes,
                                                    Error not_found) {
  auto id = SandboxId::parse(call.parameters.at(0));
  if (!id) return not_found;
  sandbox::Services& services = sandboxes.services();
  int64_t now_ms = services.expiry_time.now_ms();
  ATOLL_TRY(auto kept, services.artifacts.list(call.tenant, *id, now_ms));
  if (kept.empty()) return not_found;
  return kept;
}

http::Task<Reply> list_artifacts(Call& call, Sandboxes& sandboxes) {
  sandbox::ArtifactList found;
  auto live = named_sandbox(call, sandboxes);
  if (live) {
    auto patterns = sandbox::output_patterns(sandboxes.templates(), (*live)->row());
    ATOLL_CO_TRY(found, co_await sandbox::list_artifacts(*live, std::move(patterns)));
  } else {
    ATOLL_CO_TRY(found.artifacts, kept_artifacts(call, sandboxes, std::move(live).error()));
  }
  json::array items;
  for (const store::Artifact& artifact : found.artifacts) items.push_back(artifact_json(artifact));
  json::object object;
  object["artifacts"] = std::move(items);
  object["truncated"] = found.truncated;
  co_return std::optional(json_reply(200, object));
}

http::Task<Result<void>> send_file(Call& call, int fd) {
  while (true) {
    std::string piece(64 * 1024, '\0');
    ssize_t count = read(fd, piece.data(), piece.size());
    if (count < 0) co_return Error::system("read an artifact");
    if (count == 0) break;
    piece.resize(static_cast<size_t>(count));
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(piece));
  }
  co_return co_await call.exchange.finish();
}

http::Task<Reply> show_kept(Call& call, Sandboxes& sandboxes, std::string name, Error not_found) {
  ATOLL_CO_TRY(auto kept, kept_artifacts(call, sandboxes, std::move(not_found)));
  size_t number = 0;
  while (number < kept.size() && kept[number].name != name) ++number;
  if (number == kept.size()) co_return no_such_artifact();
  auto id = SandboxId::parse(call.parameters.at(0));
  ATOLL_CO_TRY(Fd file, sandboxes.services().artifacts.open_bytes(*id, number));
  http::Headers headers = byte_headers(call, kept[number].type);
  headers.add("Content-Length", std::to_string(kept[number].size));
  Result<void> sent = co_await call.exchange.start_stream(200, std::move(headers));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_file(call, file.get());
  co_return std::optional<http::Response>();
}

http::Task<Reply> show_artifact(Call& call, Sandboxes& sandboxes) {
  auto name = http::percent_decode_bytes(call.parameters.at(1));
  if (!name || !sandbox::is_clean_relative(*name)) co_return no_such_artifact();
  auto live = named_sandbox(call, sandboxes);
  if (!live) co_return co_await show_kept(call, sandboxes, *name, std::move(live).error());
  auto patterns = sandbox::output_patterns(sandboxes.templates(), (*live)->row());
  for (const std::string& path : patterns.paths_of(*name)) {
    FileTarget target{sandbox::Files(*live, "root"), path};
    auto answer = co_await download_file(call, std::move(target));
    if (answer || answer.error().reason() != "file_not_found") co_return answer;
  }
  co_return no_such_artifact();
}

}  // namespace

json::object artifact_json(const store::Artifact& artifact) {
  json::object object;
  put_bytes(object, "name", artifact.name);
  object["size"] = artifact.size;
  object["type"] = artifact.type;
  object["modified_at"] = to_rfc3339(time_of(artifact.modified_ns));
  object["sha256"] = artifact.sha256.string();
  return object;
}

void add_artifact_routes(Router& router, Sandboxes& sandboxes) {
  const std::string base = "/v1/sandboxes/{id}/artifacts";
  router.add({http::Method::kGet, base,
              [&sandboxes](Call& call) { return list_artifacts(call, sandboxes); }});
  router.add({http::Method::kGet, base + "/{name...}",
              [&sandboxes](Call& call) { return show_artifact(call, sandboxes); }});
}

}  // namespace atl::api::v1
