#include "api/v1/ports.h"

#include <charconv>

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/port_host.h"
#include "api/v1/sandboxes.h"
#include "base/check.h"
#include "base/clock.h"
#include "http/relay.h"
#include "sandbox/files.h"
#include "sandbox/pause.h"

namespace atl::api::v1 {

namespace json = boost::json;
using http::Method;
using sandbox::PortGrant;
using sandbox::PortTokens;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr uint64_t kDefaultExpiryMs = 3'600'000;
constexpr uint64_t kMaxExpiryMs = 7ull * 24 * 3'600'000;
// A server may be silent for long between two events; its client bounds it by going away.
constexpr std::chrono::hours kPatience{24};
constexpr char kTokenMark = '~';
constexpr std::string_view kTrafficField = "E2b-Traffic-Access-Token";

// Scripts may run, but as those of nobody's origin: they can neither read what this server says to
// its own pages nor be taken for one of them.
constexpr std::string_view kForeignOrigin =
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && port > 0 && text[0] != '0' ? std::optional(port) : std::nullopt;
}

// "8000", or "8000~<token>".
struct PortSegment {
  std::optional<uint16_t> port;
  std::string_view token;
};

PortSegment parse_segment(std::string_view text) {
  size_t mark = text.find(kTokenMark);
  std::string_view token = mark == text.npos ? std::string_view() : text.substr(mark + 1);
  return {parse_port(text.substr(0, mark)), token};
}

class PortUpstream final : public http::Upstream {
 public:
  explicit PortUpstream(std::unique_ptr<sandbox::Channel> channel) : channel_(std::move(channel)) {}

  Task<Result<std::string>> read() override { return channel_->read(deadline()); }
  Task<Result<void>> write(std::string_view bytes) override {
    return channel_->write(bytes, deadline());
  }
  void end_writing() override { channel_->end_writing(); }
  void close() override { channel_->abandon(); }

 private:
  static SteadyTime deadline() { return std::chrono::steady_clock::now() + kPatience; }

  std::unique_ptr<sandbox::Channel> channel_;
};

Error not_a_port() {
  return Error(Code::kInvalid, "a port is a number from 1 to 65535")
      .with_reason("invalid_field")
      .with_field("port");
}

http::RelayRequest relay_request(const Call& call, uint16_t port) {
  const http::Request& request = call.exchange.request();
  http::RelayRequest relayed;
  relayed.target = "/" + call.parameters.at(2);
  std::string query = without_token(request.query);
  if (!query.empty()) relayed.target += "?" + query;
  relayed.host = "localhost:" + std::to_string(port);
  std::string_view host = request.headers.find("Host").value_or("");
  if (!host.empty()) relayed.for_upstream.add("X-Forwarded-Host", std::string(host));
  if (is_port_host(host)) relayed.origin = http::Origin::kOwn;
  relayed.for_client.add("Content-Security-Policy", std::string(kForeignOrigin));
  relayed.for_client.add("Referrer-Policy", "no-referrer");  // the path may hold a token
  return relayed;
}

Error not_relayed(Error error) {
  if (error.system_errno() == ECONNREFUSED)
    return Error(Code::kUnavailable, "nothing listens on that port inside")
        .with_reason("port_not_listening");
  if (error.field() != "body") return std::move(error).with_reason("bad_gateway");
  bool late = error.code() == Code::kTimeout;
  return std::move(error).with_reason(late ? "request_timeout" : "malformed_request");
}

http::Task<Reply> pass_on(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  PortSegment segment = parse_segment(call.parameters.at(1));
  if (!segment.port) co_return not_a_port();
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(sandbox));
  ATOLL_CO_TRY(auto channel, sandbox->channels().open_port(*segment.port));
  PortUpstream upstream(std::move(channel));
  auto relayed = co_await http::relay(call.exchange, upstream, relay_request(call, *segment.port));
  if (call.exchange.answered() || call.exchange.peer_gone())
    co_return std::optional<http::Response>();
  ATOLL_CHECK(!relayed.ok());
  co_return not_relayed(std::move(relayed).error());
}

// Not an address, beneath which there are no names.
bool has_name(std::string_view site) {
  return !site.starts_with('[') && site.find_first_not_of("0123456789.:") != site.npos;
}

http::Task<Reply> sign(Call& call, Sandboxes& sandboxes, const PortTokens& tokens) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  auto port = reader.optional_small("port", 1, 65535);
  if (!port) reader.refuse("port", "is required", "missing_field");
  uint64_t expiry =
      reader.optional_integer("expires_in_ms", 1000, kMaxExpiryMs).value_or(kDefaultExpiryMs);
  ATOLL_CO_TRY_VOID(reader.finish());
  WallTime expires = sandboxes.services().clock.wall_now() + std::chrono::milliseconds(expiry);
  PortGrant grant{call.tenant, sandbox->id(), static_cast<uint16_t>(*port)};
  auto host = call.exchange.request().headers.find("Host");
  std::string site(host.value_or("localhost"));
  std::string token = tokens.sign(grant, expires);
  std::string number = std::to_string(*port);
  std::string id = sandbox->id().string();
  json::object answer;
  answer["url"] =
      "http://" + site + "/v1/sandboxes/" + id + "/ports/" + number + kTokenMark + token + "/";
  answer["host_url"] = nullptr;
  if (has_name(site))
    answer["host_url"] = "http://" + number + "-" + id + "." + site + "/?atoll_token=" + token;
  answer["expires_at"] = to_rfc3339(expires);
  co_return std::optional(json_reply(201, answer));
}

http::Task<Reply> list_ports(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  sandbox::Files files(sandbox, "user");
  ATOLL_CO_TRY(auto listening, co_await files.ports());
  json::array items;
  for (const agent::ListeningPort& port : listening) {
    json::object item;
    item["port"] = port.port;
    item["address"] = port.address;
    items.push_back(std::move(item));
  }
  json::object object;
  object["ports"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_port_routes(Router& router, Sandboxes& sandboxes, const PortTokens& tokens) {
  const std::string base = "/v1/sandboxes/{id}/ports";
  router.add(
      {Method::kGet, base, [&sandboxes](Call& call) { return list_ports(call, sandboxes); }});
  auto signing = [&sandboxes, &tokens](Call& call) { return sign(call, sandboxes, tokens); };
  router.add({Method::kPost, base, signing});
  // In whose name somebody without a key may use a port: who signed its token.
  auto admit = [&sandboxes, &tokens](const http::Request& request,
                                     const std::vector<std::string>& parameters) {
    auto sandbox = SandboxId::parse(parameters.at(0));
    PortSegment segment = parse_segment(parameters.at(1));
    std::optional<store::TenantId> nobody;
    if (!sandbox || !segment.port || request.headers.count("Authorization") > 0) return nobody;
    auto found = sandboxes.all().find(*sandbox);
    auto shown = request.headers.find(kTrafficField);
    if (shown && found != sandboxes.all().end() && tokens.is_traffic_token(*shown, *sandbox))
      return std::optional(found->second->row().tenant);
    WallTime now = sandboxes.services().clock.wall_now();
    return tokens.check(segment.token, *sandbox, *segment.port, now);
  };
  for (Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete,
                        Method::kOptions}) {
    Route route{method, base + "/{port}/{path...}",
                [&sandboxes](Call& call) { return pass_on(call, sandboxes); }};
    route.body = Route::Body::kStream;
    route.time = Route::Time::kLong;
    route.admit = admit;
    router.add(std::move(route));
  }
}

}  // namespace atl::api::v1
