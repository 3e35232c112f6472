#include "api/e2b/plane.h"

#include <algorithm>

#include "api/e2b/signature.h"

namespace atl::api::e2b {

using sandbox::Sandbox;

namespace {

constexpr std::string_view kEnvdPort = "49983";
constexpr std::string_view kInterpreterPort = "49999";
constexpr std::string_view kFilesPath = "/files";
constexpr std::string_view kTokenField = "X-Access-Token";
// No sandbox has this id: of a file whose token or signature fits none.
constexpr std::string_view kNobodys = "-";

Error sandbox_away() {
  return Error(Code::kUnavailable, "The sandbox was not found").with_reason("sandbox_away");
}

bool is_ours(std::string_view port) { return port == kEnvdPort || port == kInterpreterPort; }

std::string inner_path(std::string_view id, std::string_view port, const http::Request& request) {
  return "/e2b/" + std::string(id) + "/" + std::string(port) + request.path;
}

// Nothing if it is not there exactly once.
std::string_view field(const http::Request& request, std::string_view name) {
  return request.headers.count(name) == 1 ? *request.headers.find(name) : std::string_view();
}

Result<bool> has_access(const Plane& plane, SandboxId id, const http::Request& request) {
  auto link = request.path == kFilesPath ? parse_link(request) : std::nullopt;
  if (link) ATOLL_TRY_VOID(check_link(*link, plane.sandboxes.services().clock.wall_now()));
  if (request.headers.count(kTokenField) > 0)
    return plane.tokens.is_access_token(field(request, kTokenField), id);
  return link && LinkComparison(*link).is_signed_with(plane.tokens.access_token(id));
}

// Whoever searches is counted before anything costs more than a look-up, as with a key that is not
// known.
template <typename Shown>
Result<SandboxId> find_owner(const Search& search, const Shown& shown, std::string_view address) {
  if (auto known = search.index.recall(shown)) return *known;
  ATOLL_TRY_VOID(search.traffic.count_unknown_key(address));
  ATOLL_TRY(auto found, search.index.search(shown));
  if (!found)
    return Error(Code::kDenied, "the token or signature is wrong").with_reason("unauthenticated");
  search.traffic.forgive(address);
  return *found;
}

// Old clients send no id with a file, and a signed link has none. Nothing: it is no such request.
std::optional<Result<SandboxId>> find_owner_of_file(const Search& search,
                                                    const http::Request& request,
                                                    std::string_view address) {
  if (request.path != kFilesPath) return std::nullopt;
  auto link = parse_link(request);
  if (link) {
    auto checked = check_link(*link, search.clock.wall_now());
    if (!checked) return std::move(checked).error();
  }
  if (request.headers.count(kTokenField) > 0)
    return find_owner(search, field(request, kTokenField), address);
  if (!link) return std::nullopt;
  return find_owner(search, *link, address);
}

}  // namespace

std::optional<SandboxId> parse_sandbox_id(std::string_view text) {
  return SandboxId::parse(text.substr(0, text.find('-')));
}

std::optional<Router::Located> locate(const Search& search, const http::Request& request,
                                      const Router::Sender& sender) {
  using Located = Router::Located;
  const auto& host = sender.port_host;
  if (host && is_ours(host->port)) return Located{inner_path(host->sandbox, host->port, request)};
  if (host) return std::nullopt;
  std::string_view id = field(request, "E2b-Sandbox-Id");
  std::string_view port = field(request, "E2b-Sandbox-Port");
  if (id.empty() || port.empty()) {
    auto owner = find_owner_of_file(search, request, sender.address);
    if (!owner) return std::nullopt;
    if (!*owner) return Located{inner_path(kNobodys, kEnvdPort, request), owner->error()};
    return Located{inner_path((*owner)->view(), kEnvdPort, request)};
  }
  auto parsed = parse_sandbox_id(id);
  std::string name = parsed ? parsed->string() : "unknown";
  if (is_ours(port)) return Located{inner_path(name, port, request)};
  bool digits = port.find_first_not_of("0123456789") == port.npos;
  if (!digits) return std::nullopt;
  return Located{port_path(PortHost{std::string(port), name, ""}, request)};
}

Route::Admission admit(const Plane& plane, Needs needs, const http::Request& request,
                       const std::vector<std::string>& parameters) {
  auto id = SandboxId::parse(parameters.at(0));
  auto found = id ? plane.sandboxes.all().find(*id) : plane.sandboxes.all().end();
  // There is nothing to protect, and its clients must learn that it is not there.
  if (found == plane.sandboxes.all().end()) return sandbox_away();
  bool admitted = needs == Needs::kNothing;
  if (!admitted) {
    ATOLL_TRY(admitted, has_access(plane, *id, request));
  }
  if (!admitted && needs == Needs::kTraffic)
    admitted = plane.tokens.is_traffic_token(field(request, "E2b-Traffic-Access-Token"), *id);
  if (!admitted) return std::optional<store::TenantId>();
  return std::optional(found->second->row().tenant);
}

bool is_over(const Sandbox& sandbox) {
  sandbox::State state = sandbox.state();
  return state != sandbox::State::kRunning && state != sandbox::State::kPaused;
}

bool is_away(const Sandbox& sandbox) {
  bool sleeps = sandbox.state() == sandbox::State::kPaused && !sandbox.row().auto_resume;
  return is_over(sandbox) || sleeps;
}

Result<std::shared_ptr<Sandbox>> running_sandbox(const Call& call, const Plane& plane) {
  auto id = SandboxId::parse(call.parameters.at(0));
  auto sandbox = id ? plane.sandboxes.find(call.tenant, *id) : nullptr;
  if (!sandbox || is_away(*sandbox)) return sandbox_away();
  return sandbox;
}

Result<std::shared_ptr<Sandbox>> named_sandbox(const Call& call, const Plane& plane) {
  auto id = parse_sandbox_id(call.parameters.at(0));
  auto sandbox = id ? plane.sandboxes.find(call.tenant, *id) : nullptr;
  if (!sandbox || is_over(*sandbox))
    return Error(Code::kNotFound, "sandbox " + call.parameters.at(0) + " not found")
        .with_reason("sandbox_not_found");
  return sandbox;
}

}  // namespace atl::api::e2b
