#include "api/e2b/plane.h"

#include <algorithm>

#include "api/e2b/signature.h"

namespace atl::api::e2b {

using sandbox::Sandbox;

namespace {

constexpr std::string_view kEnvdPort = "49983";
constexpr std::string_view kInterpreterPort = "49999";
constexpr std::string_view kFilesPath = "/files";
// No sandbox has this id: of a file whose token or signature fits none.
constexpr std::string_view kNobodys = "-";

bool is_ours(std::string_view port) { return port == kEnvdPort || port == kInterpreterPort; }

std::string inner_path(std::string_view id, std::string_view port, const http::Request& request) {
  return "/e2b/" + std::string(id) + "/" + std::string(port) + request.path;
}

// Nothing if it is not there exactly once.
std::string_view field(const http::Request& request, std::string_view name) {
  return request.headers.count(name) == 1 ? *request.headers.find(name) : std::string_view();
}

bool has_access(const Plane& plane, SandboxId id, const http::Request& request) {
  if (plane.tokens.is_access_token(field(request, "X-Access-Token"), id)) return true;
  return request.path == kFilesPath && is_signed(request, plane.tokens.access_token(id));
}

// Old clients send no id with a file, and a signed link has none.
std::string files_path(TokenIndex& index, const http::Request& request) {
  auto id = index.find(field(request, "X-Access-Token"));
  if (!id && has_signature(request)) id = index.find_signed(request);
  return inner_path(id ? id->view() : kNobodys, kEnvdPort, request);
}

bool names_a_file(const http::Request& request) {
  return request.path == kFilesPath &&
         (request.headers.count("X-Access-Token") == 1 || has_signature(request));
}

}  // namespace

std::optional<SandboxId> parse_sandbox_id(std::string_view text) {
  return SandboxId::parse(text.substr(0, text.find('-')));
}

std::optional<std::string> locate(TokenIndex& index, const http::Request& request,
                                  const std::optional<PortHost>& host) {
  if (host && is_ours(host->port)) return inner_path(host->sandbox, host->port, request);
  if (host) return std::nullopt;
  std::string_view id = field(request, "E2b-Sandbox-Id");
  std::string_view port = field(request, "E2b-Sandbox-Port");
  if (id.empty() || port.empty())
    return names_a_file(request) ? std::optional(files_path(index, request)) : std::nullopt;
  auto parsed = parse_sandbox_id(id);
  std::string name = parsed ? parsed->string() : "unknown";
  if (is_ours(port)) return inner_path(name, port, request);
  bool digits = port.find_first_not_of("0123456789") == port.npos;
  if (!digits) return std::nullopt;
  return port_path(PortHost{std::string(port), name, ""}, request);
}

std::optional<store::TenantId> admit(const Plane& plane, Needs needs, const http::Request& request,
                                     const std::vector<std::string>& parameters) {
  if (parameters.at(0) == kNobodys) return std::nullopt;
  auto id = SandboxId::parse(parameters.at(0));
  auto found = id ? plane.sandboxes.all().find(*id) : plane.sandboxes.all().end();
  // There is nothing to protect, and its clients must learn that it is not there.
  if (found == plane.sandboxes.all().end()) return store::kLocalTenant;
  bool admitted = needs == Needs::kNothing || has_access(plane, *id, request);
  if (!admitted && needs == Needs::kTraffic)
    admitted = plane.tokens.is_traffic_token(field(request, "E2b-Traffic-Access-Token"), *id);
  return admitted ? std::optional(found->second->row().tenant) : std::nullopt;
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
  if (!sandbox || is_away(*sandbox))
    return Error(Code::kUnavailable, "The sandbox was not found").with_reason("sandbox_away");
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
