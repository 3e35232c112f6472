// LearnedPolicy: the smallest policy that would allow what a sandbox was denied, from the rows of
// its audit log. A request that an inspected host was not asked for is allowed by its method and
// path. A name that was only asked for, and never connected to, is allowed the usual
// ports.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "egress/policy.h"

namespace atl::egress {

class LearnedPolicy {
 public:
  void add(const boost::json::object& row);

  Policy policy() const;
  // What was tried and no rule can allow, each once: "udp 20.0.0.80:443", "not a name: …".
  const std::set<std::string>& impossible() const { return impossible_; }

 private:
  void add_connection(const boost::json::object& row);
  void add_request(const boost::json::object& row);
  void add_packet(const boost::json::object& row);
  void add_use(const Target& target, uint16_t port, std::string_view protocol);

  // By what is written first in a policy, so that the same log gives the same text.
  std::map<std::string, std::pair<Rule, std::set<uint16_t>>> uses_;
  struct Request {
    std::string name;
    uint16_t port;
    std::string method;
    auto operator<=>(const Request&) const = default;
  };
  std::map<Request, std::set<std::string>> requests_;  // paths
  std::set<std::string> connected_;                    // names
  std::set<std::string> asked_;                        // names
  std::set<std::string> impossible_;
};

}  // namespace atl::egress
