#include "api/v1/archive.h"

#include "api/json_reply.h"
#include "api/v1/file_content.h"
#include "api/v1/file_request.h"
#include "sandbox/archive.h"

namespace atl::api::v1 {

using sandbox::Sandboxes;

namespace {

constexpr size_t kUploadStepBytes = 64 * 1024;

// An error leaves the answer without its end, which is how the client learns that it is not whole.
http::Task<Result<void>> send_archive(Call& call, sandbox::ArchiveDownload& archive,
                                      std::string first) {
  while (!first.empty()) {
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(first));
    ATOLL_CO_TRY(first, co_await archive.next());
  }
  co_return co_await call.exchange.finish();
}

http::Task<Reply> download(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(sandbox::Files files, files_of(call, sandboxes));
  ATOLL_CO_TRY(std::string path, path_parameter(call.exchange.request()));
  ATOLL_CO_TRY(std::unique_ptr<sandbox::TreeReader> tree, co_await files.pack(std::move(path)));
  sandbox::ArchiveDownload archive(std::move(tree));
  // Before the head of the answer: a path that is not there is still an answer of its own.
  ATOLL_CO_TRY(std::string first, co_await archive.next());
  http::Headers headers = byte_headers(call, "application/x-tar");
  Result<void> sent = co_await call.exchange.start_stream(200, std::move(headers));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_archive(call, archive, std::move(first));
  co_return std::optional<http::Response>();
}

http::Task<Reply> upload(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(sandbox::Files files, files_of(call, sandboxes));
  ATOLL_CO_TRY(std::string path, path_parameter(call.exchange.request()));
  ATOLL_CO_TRY(sandbox::ArchiveUpload archive,
               sandbox::ArchiveUpload::create(sandboxes.services().artifacts.directory()));
  std::string buffer(kUploadStepBytes, '\0');
  std::span<char> room(buffer);
  size_t count = 1;
  while (count > 0) {
    ATOLL_CO_TRY(count, co_await call.exchange.read_body_some(room));
    std::string_view bytes(buffer.data(), count);
    ATOLL_CO_TRY_VOID(archive.append(bytes));
  }
  ATOLL_CO_TRY(sandbox::Unpacked unpacked, co_await archive.unpack(files, std::move(path)));
  boost::json::object object;
  object["entries"] = unpacked.entries;
  object["bytes"] = unpacked.bytes;
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_archive_routes(Router& router, Sandboxes& sandboxes) {
  const std::string pattern = "/v1/sandboxes/{id}/archive";
  auto get = [&sandboxes](Call& call) { return download(call, sandboxes); };
  auto put = [&sandboxes](Call& call) { return upload(call, sandboxes); };
  router.add({http::Method::kGet, pattern, get});
  Route route{http::Method::kPut, pattern, put};
  route.body = Route::Body::kStream;
  router.add(std::move(route));
}

}  // namespace atl::api::v1
