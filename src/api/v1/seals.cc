#include "api/v1/seals.h"

#include <unistd.h>

#include "api/idempotent_call.h"
#include "api/json_reply.h"
#include "api/v1/file_content.h"
#include "api/v1/snapshots.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::PackDownload;
using sandbox::Seals;

namespace {

constexpr size_t kStepBytes = 256 * 1024;
constexpr std::string_view kPackType = "application/vnd.atoll.snapshot";

Result<SnapshotId> named_snapshot(const Call& call) {
  if (auto id = SnapshotId::parse(call.parameters.at(0))) return *id;
  return Error(Code::kNotFound, "there is no such snapshot").with_reason("snapshot_not_found");
}

http::Task<Reply> seal(Call& call, Seals& seals) {
  ATOLL_CO_TRY(SnapshotId id, named_snapshot(call));
  auto sealed = co_await seals.seal(call.tenant, id);
  if (!sealed) co_return std::move(sealed).error();
  json::object object = snapshot_json(sealed->row);
  object["new_bytes"] = sealed->new_bytes;
  co_return std::optional(json_reply(200, object));
}

http::Task<Result<void>> send_part(Call& call, const Fd& file, uint64_t bytes) {
  std::string buffer(kStepBytes, '\0');
  while (bytes > 0) {
    ssize_t count = read(file.get(), buffer.data(), std::min<uint64_t>(bytes, buffer.size()));
    if (count < 0) co_return Error::system("read a part");
    if (count == 0) co_return Error(Code::kCorrupt, "a part is too short");
    bytes -= static_cast<uint64_t>(count);
    std::string_view piece(buffer.data(), static_cast<size_t>(count));
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(piece));
  }
  co_return Result<void>();
}

http::Task<Result<void>> send_pack(Call& call, std::shared_ptr<PackDownload> pack) {
  ATOLL_CO_TRY_VOID(co_await call.exchange.write(pack->manifest));
  for (const store::SnapshotPart& part : pack->parts) {
    ATOLL_CO_TRY(Fd file, pack->blobs.open(part.digest));
    ATOLL_CO_TRY_VOID(co_await send_part(call, file, part.bytes));
  }
  co_return co_await call.exchange.finish();
}

http::Task<Reply> get_pack(Call& call, Seals& seals) {
  ATOLL_CO_TRY(SnapshotId id, named_snapshot(call));
  auto pack = co_await seals.open(call.tenant, id);
  if (!pack) co_return std::move(pack).error();
  http::Headers headers = byte_headers(call, kPackType);
  headers.add("Content-Length", std::to_string((*pack)->bytes));
  Result<void> sent = co_await call.exchange.start_stream(200, std::move(headers));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_pack(call, *pack);
  co_return std::optional<http::Response>();
}

// All of it, checked; what makes it the same request stands for its body from then on.
http::Task<Result<std::shared_ptr<Seals::Upload>>> receive_pack(Call& call, Seals& seals) {
  ATOLL_CO_TRY(std::shared_ptr<Seals::Upload> upload, co_await seals.begin(call.tenant));
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) break;
    std::string piece = buffer.substr(0, count);
    ATOLL_CO_TRY_VOID(co_await seals.add(upload, std::move(piece)));
  }
  ATOLL_CO_TRY(Digest digest, seals.check(*upload));
  call.body = digest.string();
  co_return upload;
}

http::Task<Reply> keep_pack(Seals& seals, std::shared_ptr<Seals::Upload> upload) {
  auto kept = co_await seals.finish(std::move(upload));
  if (!kept) co_return std::move(kept).error();
  http::Response response = json_reply(201, snapshot_json(kept->row));
  response.headers.add("Location", "/v1/snapshots/" + kept->row.id.string());
  co_return std::optional(std::move(response));
}

http::Task<Reply> import_once(Call& call, Seals& seals, sandbox::Idempotency& idempotency) {
  ATOLL_CO_TRY_VOID(check_idempotency_key(call.exchange.request()));
  auto upload = co_await receive_pack(call, seals);
  if (!upload) co_return std::move(upload).error();
  RouteAction keep = [&seals, &upload](Call&) { return keep_pack(seals, std::move(*upload)); };
  bool once = has_idempotency_key(call.exchange.request());
  http::Task<Reply> task = once ? run_once(idempotency, call, keep) : keep(call);
  co_return co_await std::move(task);
}

http::Task<Reply> import_pack(Call& call, Seals& seals, sandbox::Idempotency& idempotency) {
  auto reply = co_await import_once(call, seals, idempotency);
  bool made = reply && !(*reply)->headers.find("Idempotency-Replayed");
  if (!made) seals.collect_soon();  // what came of it
  co_return reply;
}

}  // namespace

void add_seal_routes(Router& router, Seals& seals, sandbox::Idempotency& idempotency) {
  using http::Method;
  auto import = [&seals, &idempotency](Call& call) {
    return import_pack(call, seals, idempotency);
  };
  auto bind = [&seals](auto action) {
    return [&seals, action](Call& call) { return action(call, seals); };
  };
  router.add({.method = Method::kPost,
              .pattern = "/v1/snapshots/{snapshot}/seal",
              .action = bind(seal),
              .time = Route::Time::kLong});
  router.add({.method = Method::kGet,
              .pattern = "/v1/snapshots/{snapshot}/pack",
              .action = bind(get_pack),
              .time = Route::Time::kLong});
  router.add({.method = Method::kPost,
              .pattern = "/v1/snapshots",
              .action = import,  // takes an Idempotency-Key, once it knows the file
              .body = Route::Body::kStream,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
