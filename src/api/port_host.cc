#include "api/port_host.h"

#include <algorithm>

#include "base/ids.h"

namespace atl::api {

namespace {

constexpr std::string_view kTokenName = "atoll_token";
constexpr size_t kMaxPortDigits = 5;

// A token has no other characters; what has is none, and must not add parts to a path.
bool is_token(std::string_view text) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           (c >= 'A' && c <= 'Z');
  };
  return std::all_of(text.begin(), text.end(), allowed);
}

// Only a number is a port: "localhost:1.attacker.example" is no name of ours.
std::string_view without_port(std::string_view host) {
  size_t colon = host.rfind(':');
  if (colon == host.npos || host.ends_with(']')) return host;
  bool number = host.find_first_not_of("0123456789", colon + 1) == host.npos;
  return number ? host.substr(0, colon) : host;
}

}  // namespace

std::string name_of_host(std::string_view host) {
  std::string name(without_port(host));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return name;
}

bool is_port_host(std::string_view host) { return parse_port_host(name_of_host(host)).has_value(); }

std::optional<PortHost> parse_port_host(std::string_view name) {
  size_t dot = name.find('.');
  size_t dash = name.find('-');
  if (dot == name.npos || dash == name.npos || dash > dot) return std::nullopt;
  std::string_view port = name.substr(0, dash);
  std::string_view sandbox = name.substr(dash + 1, dot - dash - 1);
  bool digits = port.find_first_not_of("0123456789") == port.npos;
  if (port.empty() || port.size() > kMaxPortDigits || !digits || !SandboxId::parse(sandbox))
    return std::nullopt;
  return PortHost{std::string(port), std::string(sandbox), std::string(name.substr(dot + 1))};
}

std::string port_path(const PortHost& host, const http::Request& request) {
  std::string path = "/v1/sandboxes/" + host.sandbox + "/ports/" + host.port;
  auto token = http::query_parameter(request.query, kTokenName);
  if (token && !token->empty() && is_token(*token)) path += "~" + *token;
  return path + (request.path.starts_with('/') ? request.path : "/");
}

std::string without_token(std::string_view query) {
  std::string left;
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.substr(0, part.find('=')) == kTokenName) continue;
    if (!left.empty()) left += '&';
    left += part;
  }
  return left;
}

}  // namespace atl::api
