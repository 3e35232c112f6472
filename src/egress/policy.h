// Policy: an ordered list of rules about names, address ranges and ports. The first rule that
// speaks of a destination decides; what no rule speaks of is denied. Plain data: parsed once, at
// the edge (policy_json.h, policy_file.h), and compared only with names in their one form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "egress/address.h"
#include "egress/budget.h"
#include "egress/header_setting.h"
#include "egress/host_name.h"
#include "egress/request_rule.h"
#include "egress/secret_use.h"
#include "egress/upstream_use.h"

namespace atl::egress {

inline constexpr size_t kMaxRules = 256;
inline constexpr size_t kMaxPorts = 32;
inline constexpr uint16_t kDefaultPorts[] = {80, 443};

enum class Action : unsigned char { kAllow, kDeny };

// kLearn allows no more, but answers every name, so that what a program would reach is recorded.
enum class Mode : unsigned char { kEnforce, kLearn };

// What may be spoken on a connection. kAuto: TLS or HTTP/1.1, told apart by the first byte, on port
// 443 only TLS and on port 80 only HTTP. kTcp: anything, and then only the name that was resolved
// is known.
enum class Protocol : unsigned char { kAuto, kTls, kHttp, kTcp };
std::string_view protocol_name(Protocol protocol);

struct AnyBeneath {  // *.suffix
  HostName suffix;
  bool operator==(const AnyBeneath&) const = default;
};
using Target = std::variant<HostName, AnyBeneath, Cidr>;

// Where a connection goes: to a name, or to an address by itself.
using Destination = std::variant<HostName, Address>;

struct Rule {
  Action action = Action::kAllow;
  Target target;
  std::vector<uint16_t> ports = {};  // none: to allow, kDefaultPorts; to deny, every port
  Protocol protocol = Protocol::kAuto;
  bool is_short = false;  // written as one text, "pypi.org:443"
  Budget budget = {};     // of all connections that it allows
  // TLS is ended by egress, and each request is looked at. Only of a rule that allows.
  std::optional<RequestRule> inspection = {};

  bool names(const HostName& name) const;
  // To allow an address that is not of the public internet, the range must lie in the special range
  // that it is of: 0.0.0.0/0 allows nothing in 10.0.0.0/8.
  bool names(const Address& address) const;
  bool has_port(uint16_t port) const;
  std::string target_text() const;
  bool operator==(const Rule&) const = default;
};

// "pypi.org", "*.npmjs.org:443", "10.1.0.0/16:5432", "[fd00::/8]:443". The error says what is
// wrong.
Result<Rule> parse_short_rule(std::string_view text);
std::string short_rule_text(const Rule& rule);
Result<Target> parse_target(std::string_view text);

struct Decision {
  Action action = Action::kDeny;
  std::string rule = {};    // "rules[0]", "allow[2]", "public_names", or empty
  std::string reason = {};  // why it is denied: "no_rule", "port_not_allowed", "denied_by_rule"
  Protocol protocol = Protocol::kAuto;
  size_t index = 0;           // of `rule`, when it is allowed by one
  bool is_inspected = false;  // each request is to be decided by decide_request()

  bool allowed() const { return action == Action::kAllow; }
};

struct Policy {
  // Those that are written as one text come last, in their own list "allow".
  std::vector<Rule> rules = {};
  Budget budget = {};  // of all connections together
  Mode mode = Mode::kEnforce;
  std::vector<SecretUse> secrets = {};
  std::vector<HeaderSetting> set_headers = {};
  // What no rule denies is allowed to every name of the public internet, on any port. The API takes
  // it from nobody: it is what an operator has set for the tenant.
  bool public_names = false;
  std::optional<UpstreamUse> upstream = {};  // what all is dialled through

  // A connection to a name, before it is resolved.
  Decision decide(const HostName& name, uint16_t port) const;
  // A request on a connection that is inspected: the first rule that speaks of it.
  Decision decide_request(const HostName& name, uint16_t port, std::string_view method,
                          std::string_view path) const;
  // A connection to an address by itself.
  Decision decide(const Address& address, uint16_t port) const;
  Decision decide(const Destination& destination, uint16_t port) const;
  // Whether a name is answered at all: some port of it is allowed.
  Decision decide_name(const HostName& name) const;
  // Whether a name's address may be dialled: it is public, or a rule for ranges allows it.
  bool may_dial(const Address& address, uint16_t port) const;

  // "rules[0]" or "allow[0]".
  std::string rule_name(size_t index) const;
  // The ranges of which some address is allowed, none inside another.
  std::vector<Cidr> open_ranges() const;
  // Some connection may be inspected: a rule says so, or a secret or a field to be set needs it.
  bool inspects() const;
  bool operator==(const Policy&) const = default;

 private:
  template <typename Destination>
  Decision decide_any(const Destination& destination, uint16_t port) const;
};

// Which rule decides, and the smallest change that would allow it; `change` is empty when it is
// allowed, or when nothing would.
struct Explanation {
  Decision decision;
  std::string change;
};
Explanation explain(const Policy& policy, const HostName& name, uint16_t port);
Explanation explain(const Policy& policy, const Address& address, uint16_t port);

}  // namespace atl::egress
