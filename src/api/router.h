// Router: what every request has in common. Host and Origin are checked, the key is turned into a
// tenant that may not take more than its share, the route is found, the body is read within its
// limit, a creating call with a key happens once, errors become answers of one shape. A handler is
// parse, one call, reply.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/port_host.h"
#include "api/route_pattern.h"
#include "api/traffic.h"
#include "base/result.h"
#include "http/exchange.h"
#include "http/server.h"
#include "sandbox/idempotency.h"
#include "sandbox/keys.h"

namespace atl::api {

inline constexpr size_t kMaxBodyBytes = 1024 * 1024;

struct Call {
  http::Exchange& exchange;
  store::TenantId tenant;
  std::vector<std::string> parameters;  // the {…} of the route, decoded; {…...} as received
  std::string body;
  std::string request_id;
  // Of a creating route: what is made must be stored with the key, and what was made already is
  // answered about instead of being made again.
  std::optional<sandbox::IdempotencyKey> idempotency_key = {};
  sandbox::Made made = {};
};

// Gives the answer, or nothing if it has answered on the exchange itself (a stream).
using Reply = Result<std::optional<http::Response>>;
using RouteAction = std::function<http::Task<Reply>(Call&)>;

struct Route {
  http::Method method;
  std::string pattern;
  RouteAction action;
  enum class Access : unsigned char { kKey, kOperator, kPublic } access = Access::kKey;
  // kStream: any type and length; the action reads it from the exchange.
  enum class Body : unsigned char { kJson, kStream } body = Body::kJson;
  // kCreates: takes an Idempotency-Key.
  enum class Effect : unsigned char { kOther, kCreates } effect = Effect::kOther;
  // kLong: streams or may wait, so its tenant can have only so many open at a time.
  enum class Time : unsigned char { kShort, kLong } time = Time::kShort;
  // In whose name a caller is served without a key; nobody's: it must show one, and what it showed
  // instead counts as a wrong one. An error refuses it whatever else it shows. May cost no more
  // than a hash of the request: it is asked before anything was counted.
  using Admission = Result<std::optional<store::TenantId>>;
  std::function<Admission(const http::Request&, const std::vector<std::string>&)> admit = {};
  // Where its callers put their key: `Authorization: Bearer`, or `X-API-Key`.
  enum class Credential : unsigned char { kBearer, kApiKey } credential = Credential::kBearer;
  // The shape of its errors, if it is not that of failure.h.
  http::Response (*failure)(const Error& error, std::string_view request_id) = nullptr;
};

class Router {
 public:
  // `host_names`: names, besides loopback ones, under which the server may be addressed.
  Router(sandbox::Keys& keys, sandbox::Idempotency& idempotency, Traffic& traffic,
         std::set<std::string, std::less<>> host_names);

  void add(Route route);
  // Where a request comes from: the host, if it is that of a port, and whose it is.
  struct Sender {
    std::optional<PortHost> port_host;
    std::string address;
  };
  struct Located {
    std::string path;
    std::optional<Error> refused = {};  // why nobody is let in by that way
  };
  // How requests that are told apart by something other than their path are found: the path of the
  // route that they mean, or nothing. Not asked before set_ready().
  using Locate = std::function<std::optional<Located>(const http::Request&, const Sender&)>;
  void set_locate(Locate locate) { locate_ = std::move(locate); }
  // Until then, routes that need a key answer 503.
  void set_ready() { ready_ = true; }
  bool ready() const { return ready_; }
  // Every route as "GET /v1/sandboxes/{id}", one a line.
  std::string listing() const;
  http::Task<void> serve(http::Exchange& exchange);

  // How many requests were answered, by route ("GET /v1/sandboxes/{id}"; empty: no route) and
  // status (0: the peer had gone). A stream counts when it ends.
  using Answered = std::map<std::pair<std::string, int>, uint64_t>;
  const Answered& answered() const { return answered_; }

  // How the HTTP server answers what never reached serve().
  static http::Response refuse(int status, std::string_view reason);

 private:
  struct Known {
    Route route;
    RoutePattern pattern;
  };
  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> parameters;
    std::string allowed;  // methods that the path knows
    std::optional<Error> refused = {};
  };

  http::Task<Result<http::Response>> answer(http::Exchange& exchange, Match& found,
                                            std::string& request_id, bool& answered);
  static http::Task<Result<std::string>> read_body(http::Exchange& exchange, const Route& route);
  Result<void> check_origin(const http::Request& request) const;
  bool is_known_host(std::string_view host) const;
  // Of a request to "<port>-<id>.<domain>".
  std::optional<PortHost> find_port_host(const http::Request& request) const;
  http::Task<Result<sandbox::Identity>> authenticate(const http::Exchange& exchange,
                                                     const Route* route);
  http::Task<Result<store::TenantId>> admit(const http::Exchange& exchange, const Match& found);
  Match match(const http::Exchange& exchange) const;

  sandbox::Keys& keys_;
  sandbox::Idempotency& idempotency_;
  Traffic& traffic_;
  std::set<std::string, std::less<>> host_names_;
  std::vector<Known> routes_;
  Locate locate_;
  bool ready_ = false;
  Answered answered_;
};

}  // namespace atl::api
