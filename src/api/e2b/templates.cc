#include "api/e2b/templates.h"

#include <boost/json/array.hpp>

#include "api/e2b/build_script.h"
#include "api/e2b/control_route.h"
#include "api/e2b/sandbox_request.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/received_file.h"
#include "api/v1/template_json.h"
#include "base/file.h"
#include "base/utf8.h"
#include "sandbox/template_builds.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::TemplateBuild;

namespace {

constexpr size_t kMaxEntries = 100;  // of a log, in one answer

// The same clock and state for all routes here. Outlives the router's calls.
struct Desk {
  Plane plane;
  TemplateOrders& orders;
  SteadyTime now() const { return plane.sandboxes.services().clock.steady_now(); }
};

Error no_such_build(const std::string& name) {
  return Error(Code::kNotFound, "there is no such build of the template '" + name + "'")
      .with_reason("build_not_found");
}

Result<std::shared_ptr<TemplateOrder>> named_order(const Call& call, const Desk& desk) {
  auto order = desk.orders.find(call.tenant, call.parameters.at(0), call.parameters.at(1));
  if (!order) return no_such_build(call.parameters.at(0));
  return order;
}

http::Response with_status(int status) {
  http::Response response;
  response.status = status;
  return response;
}

http::Task<Reply> announce(Call& call, Desk desk) {
  ATOLL_CO_TRY(AnnouncedTemplate announced, parse_announced(call.body));
  auto order = desk.orders.add(call.tenant, std::move(announced));
  const std::string& name = order->announced.name;
  json::array tags;
  for (const std::string& tag : order->announced.tags) tags.emplace_back(tag);
  json::object object;
  object["templateID"] = name;
  object["buildID"] = order->id;
  object["public"] = false;
  object["names"] = json::array{json::string(name)};
  object["aliases"] = json::array{json::string(name)};
  object["tags"] = std::move(tags);
  co_return std::optional(json_reply(202, object));
}

// Where this server was asked; a name beneath its domain is reached by TLS.
std::string origin_of(const Plane& plane, const http::Request& request) {
  std::string host(request.headers.find("Host").value_or("localhost"));
  bool by_tls = !plane.domain.empty() && host == "api." + std::string(plane.domain);
  return (by_tls ? "https://" : "http://") + host;
}

http::Task<Reply> link_upload(Call& call, Desk desk) {
  const std::string& name = call.parameters.at(0);
  if (!desk.orders.knows(call.tenant, name)) co_return no_such_build(name);
  auto hash = Digest::parse(call.parameters.at(1));
  if (!hash) co_return invalid_parameter("hash", "must be 64 hexadecimal digits");
  auto found = desk.plane.uploads.find(call.tenant, *hash);
  json::object object;
  object["present"] = found.ok();
  object["url"] = origin_of(desk.plane, call.exchange.request()) + "/e2b/uploads/" +
                  desk.orders.make_link(call.tenant, *hash, desk.now());
  co_return std::optional(json_reply(201, object));
}

http::Task<Reply> receive_upload(Call& call, Desk desk) {
  auto link = desk.orders.find_link(call.parameters.at(0), desk.now());
  if (!link)
    co_return Error(Code::kNotFound, "there is no such link").with_reason("build_not_found");
  WallTime now = desk.plane.sandboxes.services().clock.wall_now();
  ATOLL_CO_TRY_VOID(desk.plane.uploads.sweep(now));
  ATOLL_CO_TRY(store::Arrival arrival, desk.plane.uploads.begin(link->tenant));
  ATOLL_CO_TRY(Fd file, co_await receive_file(call, std::move(arrival)));
  ATOLL_CO_TRY_VOID(desk.plane.uploads.keep(link->tenant, link->name, file));
  co_return std::optional(with_status(200));
}

// What the sandboxes of these clients may reach, so may the one that sets a template up.
http::Task<Result<void>> allow_network(Plane plane, std::shared_ptr<sandbox::Sandbox> sandbox) {
  auto ceiling = plane.tenants.e2b_internet(sandbox->row().tenant);
  if (ceiling == sandbox::E2bInternet::kDenied) co_return Result<void>();
  ATOLL_CO_TRY(std::string network, parse_network("{}", ceiling));
  sandbox::ChangeSandbox change{.network = network};
  ATOLL_CO_TRY_VOID(co_await plane.sandboxes.change(sandbox, change));
  co_return co_await plane.tenants.hold_ceiling(sandbox);
}

Result<std::shared_ptr<std::vector<store::PackedFile>>> open_archives(
    const Desk& desk, store::TenantId tenant, const BuildDefinition& definition) {
  auto files = std::make_shared<std::vector<store::PackedFile>>();
  for (size_t number = 0; number < definition.archives.size(); ++number) {
    const Digest& name = definition.archives[number];
    auto file = desk.plane.uploads.find(tenant, name);
    if (!file)
      return Error(Code::kInvalid, "the files of hash " + name.string() + " were not uploaded")
          .with_reason("invalid_field");
    std::string path = "files/" + std::string(kCopyPlace) + "/" + std::to_string(number) + ".tar";
    files->push_back({std::move(path), std::move(*file)});
  }
  return files;
}

http::Task<Reply> begin_template(Call& call, Desk desk) {
  ATOLL_CO_TRY(std::shared_ptr<TemplateOrder> order, named_order(call, desk));
  if (order->build)
    co_return Error(Code::kConflict, "this build has begun already").with_reason("template_busy");
  auto& templates = desk.plane.sandboxes.templates();
  ATOLL_CO_TRY(BuildDefinition definition,
               parse_definition(call.body, order->announced, templates, call.tenant));
  ATOLL_CO_TRY(auto files, open_archives(desk, call.tenant, definition));
  sandbox::PackOrder asked{.tenant = call.tenant, .name = order->announced.name};
  asked.tags = order->announced.tags;
  if (definition.anew) asked.freshness = sandbox::Freshness::kAnew;
  asked.on_setup = [plane = desk.plane](std::shared_ptr<sandbox::Sandbox> sandbox) {
    return allow_network(plane, std::move(sandbox));
  };
  std::string directory = desk.plane.builds.packs().directory();
  sandbox::TemplateBuilds::MakePack make = [files, directory, text = definition.manifest] {
    return store::pack_manifest(text, directory, *files);
  };
  auto begun = co_await desk.plane.builds.begin(std::move(asked), std::move(make));
  if (!begun) co_return std::move(begun).error();
  order->build = *begun;
  co_return std::optional(with_status(202));
}

json::array log_entries(const TemplateBuild& build, size_t from) {
  json::array entries;
  const auto& lines = build.lines();
  size_t end = std::min(lines.size(), from + kMaxEntries);
  for (size_t i = from; i < end; ++i) {
    size_t start = i == 0 ? 0 : lines[i - 1].end;
    json::object entry;
    entry["timestamp"] = to_rfc3339(WallTime{std::chrono::milliseconds(lines[i].at_ms)});
    entry["level"] = "info";
    entry["message"] = readable_utf8(build.log().substr(start, lines[i].end - start - 1));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string_view status_of(const TemplateOrder& order) {
  if (!order.build) return "waiting";
  switch (order.build->state()) {
    case TemplateBuild::State::kWaiting:
      return "waiting";
    case TemplateBuild::State::kRunning:
      return "building";
    case TemplateBuild::State::kBuilt:
      return "ready";
    case TemplateBuild::State::kFailed:
      return "error";
  }
  return "error";
}

// Clients show the line of the program that asked for the step.
json::object reason_of(const TemplateBuild& build) {
  json::object reason;
  reason["message"] = readable_utf8(build.failure()->message());
  unsigned step = build.step().command;
  reason["step"] = step == 0 ? "base" : std::to_string(step);
  reason["logEntries"] = json::array();
  return reason;
}

http::Task<Reply> show_template(Call& call, Desk desk) {
  ATOLL_CO_TRY(std::shared_ptr<TemplateOrder> order, named_order(call, desk));
  ATOLL_CO_TRY(auto offset, number_parameter("logsOffset", call.exchange.request()));
  json::object object;
  object["templateID"] = order->announced.name;
  object["buildID"] = order->id;
  object["status"] = status_of(*order);
  object["logs"] = json::array();
  object["logEntries"] = json::array();
  if (order->build) object["logEntries"] = log_entries(*order->build, offset.value_or(0));
  if (order->build && order->build->failure()) object["reason"] = reason_of(*order->build);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> find_alias(Call& call, Desk desk) {
  const std::string& alias = call.parameters.at(0);
  ATOLL_CO_TRY(auto found, desk.plane.sandboxes.templates().find(call.tenant, alias));
  if (!found)
    co_return Error(Code::kNotFound, "template '" + alias + "' not found")
        .with_reason("template_not_found");
  json::object object;
  object["templateID"] = found->name;
  object["public"] = found->origin != sandbox::KnownTemplate::Origin::kOwn;
  co_return std::optional(json_reply(200, object));
}

// For these clients a snapshot is a template too.
http::Task<Reply> remove_template(Call& call, Desk desk) {
  const std::string& given = call.parameters.at(0);
  if (auto id = parse_snapshot_id(given)) {
    ATOLL_CO_TRY_VOID(
        co_await desk.plane.snapshots.remove(call.tenant, *id, store::Orphans::kAdopt));
    co_return std::optional(with_status(204));
  }
  // All versions go; a tag alone is taken away by its own call.
  ATOLL_CO_TRY(TaggedName named, parse_tagged(given));
  if (named.tag != sandbox::kDefaultTag)
    co_return Error(Code::kNotFound, "there is no template " + given)
        .with_reason("template_not_found");
  ATOLL_CO_TRY_VOID(co_await desk.plane.builds.remove(call.tenant, named.name));
  co_return std::optional(with_status(204));
}

}  // namespace

void add_template_routes(Router& router, Plane plane, TemplateOrders& orders) {
  Desk desk{plane, orders};
  router.add(control_route(Method::kPost, "/v3/templates", desk, announce));
  router.add(control_route(Method::kGet, "/templates/{template}/files/{hash}", desk, link_upload));
  router.add(control_route(Method::kPost, "/v2/templates/{template}/builds/{build}", desk,
                           begin_template));
  router.add(control_route(Method::kGet, "/templates/{template}/builds/{build}/status", desk,
                           show_template));
  router.add(control_route(Method::kGet, "/templates/aliases/{alias}", desk, find_alias));
  router.add(control_route(Method::kDelete, "/templates/{template}", desk, remove_template));
  Route upload = control_route(Method::kPut, "/e2b/uploads/{token}", desk, receive_upload);
  upload.body = Route::Body::kStream;
  upload.admit = [desk](const http::Request&, const std::vector<std::string>& parameters) {
    auto link = desk.orders.find_link(parameters.at(0), desk.now());
    return link ? std::optional(link->tenant) : std::nullopt;
  };
  router.add(std::move(upload));
}

}  // namespace atl::api::e2b
