#include "cli/server.h"

#include <charconv>

#include <boost/json/parse.hpp>

#include "base/file.h"
#include "cli/readable.h"
#include "http/client.h"

namespace atl::cli {
namespace {

constexpr size_t kMaxAddressBytes = 128;
constexpr size_t kMaxKeyBytes = 512;

std::string trimmed(std::string text) {
  size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == text.npos ? 0 : end + 1);
  return text;
}

bool is_loopback(const Server& server) {
  return server.host == "localhost" || ListenAddress{server.host, server.port}.is_loopback();
}

// What of its checks is unwell, as ": pool: it is read-only, since …; …".
std::string troubles_in(const std::string& body) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(body, error);
  const auto* object = error ? nullptr : value.if_object();
  const auto* checks = object != nullptr ? object->if_contains("checks") : nullptr;
  std::string troubles;
  if (checks == nullptr || !checks->is_array()) return troubles;
  for (const boost::json::value& check : checks->get_array()) {
    const auto* one = check.if_object();
    if (one == nullptr || text_field(*one, "status") == "ok") continue;
    troubles += (troubles.empty() ? ": " : "; ") + text_field(*one, "name") + ": " +
                text_field(*one, "reason") + ", since " + text_field(*one, "since");
  }
  return troubles;
}

}  // namespace

Result<Server> parse_url(std::string_view url) {
  Error malformed(Code::kInvalid, "url \"" + std::string(url) + "\" is not http://HOST:PORT");
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return malformed;
  std::string_view rest = url.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?#@ \t\r\n") != rest.npos) return malformed;

  Server server;
  size_t colon = rest.rfind(':');
  bool has_port = colon != rest.npos && rest.back() != ']';
  server.host = std::string(rest.substr(0, has_port ? colon : rest.npos));
  if (server.host.size() > 2 && server.host.front() == '[' && server.host.back() == ']')
    server.host = server.host.substr(1, server.host.size() - 2);
  if (server.host.empty()) return malformed;
  server.port = 80;
  if (!has_port) return server;
  std::string_view digits = rest.substr(colon + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), server.port);
  if (error != std::errc() || end != digits.data() + digits.size() || server.port == 0)
    return malformed;
  return server;
}

Result<ListenAddress> read_address(const Places& places) {
  auto text = read_file(places.address(), kMaxAddressBytes);
  if (!text && text.error().system_errno() == ENOENT)
    return Error(Code::kUnavailable,
                 "no Atoll is running in " + places.state + " (start it with: atoll up --detach)");
  if (!text) return std::move(text).error();
  return ListenAddress::parse(trimmed(std::move(*text)));
}

Result<std::string> read_local_key(const Places& places) {
  auto key = read_file(places.local_key(), kMaxKeyBytes);
  if (!key && key.error().code() == Code::kDenied)
    return Error(Code::kDenied, "the local key can be read by root only: set ATOLL_KEY");
  if (!key) return std::move(key).error();
  return trimmed(std::move(*key));
}

Result<Server> find_server(const Places& places, const ServerChoice& choice) {
  Server server;
  if (choice.url.empty()) {
    ATOLL_TRY(ListenAddress listening, read_address(places));
    ListenAddress address = listening.reachable();
    server = {address.host, address.port, ""};
  } else {
    ATOLL_TRY(server, parse_url(choice.url));
  }
  server.key = choice.key;
  if (!server.key.empty()) return server;
  if (!is_loopback(server))
    return Error(Code::kDenied, "no key for " + server.host + ": set ATOLL_KEY");
  ATOLL_TRY(server.key, read_local_key(places));
  return server;
}

Result<void> check_ready(const std::string& host, unsigned short port) {
  auto client = http::Client::create(host, port, std::chrono::milliseconds(2000));
  ATOLL_TRY(http::Response response, client->send(http::Method::kGet, "/readyz", {}, ""));
  if (response.status == 200) return {};
  return Error(Code::kUnavailable,
               "/readyz answers " + std::to_string(response.status) + troubles_in(response.body));
}

}  // namespace atl::cli
