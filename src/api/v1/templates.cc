#include "api/v1/templates.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/received_file.h"
#include "api/v1/file_content.h"
#include "api/v1/template_json.h"
#include "base/file.h"
#include "base/utf8.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::KnownTemplate;
using sandbox::TemplateBuild;
using sandbox::TemplateBuilds;
using sandbox::Templates;

namespace {

constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMaxReferenceBytes = 200;
constexpr size_t kMaxManifestBytes = 256 * 1024;
constexpr size_t kStepBytes = 64 * 1024;
constexpr size_t kEventBytes = 32 * 1024;

struct Parts {
  TemplateBuilds& builds;
  Templates& templates;
};

Error not_found(std::string_view name) {
  return Error(Code::kNotFound, "there is no template " + std::string(name.substr(0, 64)))
      .with_reason("template_not_found");
}

Result<KnownTemplate> named_template(Call& call, Parts& parts) {
  const std::string& name = call.parameters.at(0);
  if (name.size() > kMaxReferenceBytes) return not_found(name);
  ATOLL_TRY(std::optional<KnownTemplate> found, parts.templates.find(call.tenant, name));
  if (!found) return not_found(name);
  return std::move(*found);
}

http::Response build_reply(const TemplateBuild& build) {
  http::Response response = json_reply(build.ended() ? 200 : 202, build_json(build));
  response.headers.add("Location", "/v1/templates/" + build.name() + "/build");
  return response;
}

http::Task<Reply> list_templates(Call& call, Parts& parts) {
  ATOLL_CO_TRY(std::vector<KnownTemplate> all, parts.templates.list(call.tenant));
  json::array items;
  for (const KnownTemplate& known : all) {
    auto build = parts.builds.find(call.tenant, known.name);
    items.push_back(template_json(known, build.get()));
  }
  json::object object;
  object["templates"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_template(Call& call, Parts& parts) {
  ATOLL_CO_TRY(KnownTemplate known, named_template(call, parts));
  auto build = parts.builds.find(call.tenant, known.name);
  co_return std::optional(json_reply(200, template_json(known, build.get())));
}

struct BuildRequest {
  std::optional<std::string> built_in;
  std::optional<std::string> manifest;
  sandbox::Freshness freshness = sandbox::Freshness::kAsBuilt;
};

Result<BuildRequest> parse_build(std::string_view body, store::TenantId tenant) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  BuildRequest request;
  request.built_in = reader.optional_text("template", kMaxNameBytes);
  request.manifest = reader.optional_text("manifest", kMaxManifestBytes);
  bool anew = reader.optional_boolean("anew").value_or(false);
  if (request.built_in.has_value() == request.manifest.has_value())
    reader.refuse("template", "or manifest is required, and not both");
  ATOLL_TRY_VOID(reader.finish());
  if (anew && request.built_in && tenant != store::kLocalTenant)
    return Error(Code::kDenied, "what comes with Atoll is built anew by its operator")
        .with_reason("operator_only");
  if (anew) request.freshness = sandbox::Freshness::kAnew;
  return request;
}

http::Task<Reply> build(Call& call, Parts& parts) {
  ATOLL_CO_TRY(BuildRequest request, parse_build(call.body, call.tenant));
  std::shared_ptr<TemplateBuild> begun;
  if (request.built_in) {
    ATOLL_CO_TRY(begun, parts.builds.begin_built_in(*request.built_in, request.freshness));
  } else {
    ATOLL_CO_TRY(Fd pack,
                 store::pack_manifest(*request.manifest, parts.builds.packs().directory()));
    sandbox::PackOrder order{.tenant = call.tenant, .name = "", .freshness = request.freshness};
    ATOLL_CO_TRY(begun, co_await parts.builds.begin(order, std::move(pack)));
  }
  co_return std::optional(build_reply(*begun));
}

http::Task<Reply> put_pack(Call& call, Parts& parts) {
  const std::string& name = call.parameters.at(0);
  ATOLL_CO_TRY(bool anew, flag_parameter("anew", call.exchange.request()));
  if (!store::is_template_name(name)) co_return not_found(name);
  ATOLL_CO_TRY(store::Arrival arrival, parts.builds.packs().begin(call.tenant));
  ATOLL_CO_TRY(Fd pack, co_await receive_file(call, std::move(arrival)));
  auto freshness = anew ? sandbox::Freshness::kAnew : sandbox::Freshness::kAsBuilt;
  sandbox::PackOrder order{.tenant = call.tenant, .name = name, .freshness = freshness};
  ATOLL_CO_TRY(std::shared_ptr<TemplateBuild> begun,
               co_await parts.builds.begin(order, std::move(pack)));
  co_return std::optional(build_reply(*begun));
}

http::Task<Result<void>> send_file(Call& call, const Fd& file) {
  std::string buffer(kStepBytes, '\0');
  for (off_t offset = 0;;) {
    ssize_t count = pread(file.get(), buffer.data(), buffer.size(), offset);
    if (count < 0) co_return Error::system("read a pack");
    if (count == 0) co_return co_await call.exchange.finish();
    offset += count;
    std::string_view part(buffer.data(), static_cast<size_t>(count));
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(part));
  }
}

// The pack that the template was built from, or would be.
Result<Fd> find_pack(Call& call, Parts& parts, const KnownTemplate& known) {
  const std::string& directory = parts.builds.packs().directory();
  for (store::TenantId owner : {call.tenant, store::kLocalTenant})
    if (const store::TemplateRow* row = parts.templates.find_row(owner, known.name))
      return parts.builds.packs().find(row->pack);
  if (auto folder = parts.templates.find_built_in(known.name))
    return store::pack_folder(*folder, directory);
  return Error(Code::kNotFound, "the template " + known.name + " was installed without its pack")
      .with_reason("pack_not_found");
}

http::Task<Reply> get_pack(Call& call, Parts& parts) {
  ATOLL_CO_TRY(KnownTemplate known, named_template(call, parts));
  ATOLL_CO_TRY(Fd pack, find_pack(call, parts, known));
  http::Headers headers = byte_headers(call, "application/x-tar");
  Result<void> sent = co_await call.exchange.start_stream(200, std::move(headers));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_file(call, pack);
  co_return std::optional<http::Response>();
}

http::Task<Reply> remove_template(Call& call, Parts& parts) {
  ATOLL_CO_TRY_VOID(co_await parts.builds.remove(call.tenant, call.parameters.at(0)));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

http::Task<Result<void>> send_event(Call& call, std::string name, const json::object& data,
                                    size_t offset) {
  http::ServerSentEvent event{std::to_string(offset), std::move(name), json_text(data)};
  std::string text = http::format_event(event);
  co_return co_await call.exchange.write(text);
}

// The log from its beginning or from an event's id, each new step, and how it ended.
http::Task<Result<void>> send_build(Call& call, std::shared_ptr<TemplateBuild> build,
                                    size_t offset) {
  unsigned step = 0;
  std::string title;
  while (true) {
    bool ended = build->ended();
    if (build->step().number != step || build->step().title != title) {
      step = build->step().number;
      title = build->step().title;
      json::object data = build_json(*build);
      ATOLL_CO_TRY_VOID(co_await send_event(call, "step", data, offset));
    }
    while (offset < build->log().size()) {
      std::string piece = build->log().substr(offset, kEventBytes);
      offset += piece.size();
      json::object data{{"text", readable_utf8(piece)}};
      ATOLL_CO_TRY_VOID(co_await send_event(call, "log", data, offset));
    }
    if (ended) break;
    if (build->ended() || offset < build->log().size()) continue;
    auto watch = call.exchange.watch_peer();
    if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
    bool changed = co_await build->wait_changed();
    if (!changed) co_return Error(Code::kCancelled, "the client has gone");
  }
  json::object data = build_json(*build);
  ATOLL_CO_TRY_VOID(co_await send_event(call, "end", data, offset));
  co_return co_await call.exchange.finish();
}

http::Task<Reply> follow(Call& call, Parts& parts) {
  std::string name = call.parameters.at(0);
  std::shared_ptr<TemplateBuild> build = parts.builds.find(call.tenant, name);
  if (!build)
    co_return Error(Code::kNotFound, "nobody has built " + name.substr(0, 64) + " lately")
        .with_reason("build_not_found");
  const http::Request& request = call.exchange.request();
  bool events = request.headers.lists("Accept", "text/event-stream");
  if (!events) co_return std::optional(json_reply(200, build_json(*build)));
  size_t offset = 0;
  if (auto last = request.headers.find("Last-Event-ID")) {
    auto [end, code] = std::from_chars(last->data(), last->data() + last->size(), offset);
    if (code != std::errc() || end != last->data() + last->size() || offset > build->log().size())
      co_return invalid_parameter("Last-Event-ID", "must be the id of an event of this build");
  }
  http::Headers headers{{"X-Request-Id", call.request_id}};
  Result<void> sent = co_await http::start_events(call.exchange, std::move(headers));
  if (sent) sent = co_await send_build(call, build, offset);
  co_return std::optional<http::Response>();
}

}  // namespace

void add_template_routes(Router& router, TemplateBuilds& builds, Templates& templates) {
  using http::Method;
  auto bind = [&](auto action) {
    return [&builds, &templates, action](Call& call) -> http::Task<Reply> {
      Parts parts{builds, templates};
      co_return co_await action(call, parts);
    };
  };
  router.add({Method::kGet, "/v1/templates", bind(list_templates)});
  router.add({Method::kPost, "/v1/templates", bind(build)});
  router.add({Method::kGet, "/v1/templates/{name}", bind(show_template)});
  router.add({Method::kDelete, "/v1/templates/{name}", bind(remove_template)});
  router.add({Method::kGet, "/v1/templates/{name}/build", bind(follow)});
  router.add({Method::kGet, "/v1/templates/{name}/pack", bind(get_pack)});
  Route route{Method::kPut, "/v1/templates/{name}/pack", bind(put_pack)};
  route.body = Route::Body::kStream;
  router.add(std::move(route));
}

}  // namespace atl::api::v1
