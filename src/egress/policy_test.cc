#include "egress/policy.h"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "egress/policy_file.h"
#include "egress/policy_json.h"

namespace atl::egress {
namespace {

Policy policy_of(std::string_view json) {
  auto policy = parse_policy_json(json);
  EXPECT_TRUE(policy.ok()) << (policy ? "" : policy.error().message());
  return policy ? *policy : Policy{};
}

HostName name(std::string_view text) { return *HostName::parse(text); }
Address address(std::string_view text) { return *Address::parse(text); }

constexpr const char* kExample = R"({
  "rules": [{"deny": "bad.example.com"}, {"allow": "*.example.com", "ports": [443, 8443]},
            {"allow": "git.example.org", "ports": [22], "protocol": "tcp"}],
  "allow": ["pypi.org", "db.internal:5432", "10.1.0.0/16:5432", "[fd12::/16]:443"]})";

TEST(Policy, DeniesWhatNoRuleSpeaksOf) {
  Decision decision = Policy{}.decide(name("pypi.org"), 443);
  EXPECT_FALSE(decision.allowed());
  EXPECT_EQ(decision.reason, "no_rule");
  EXPECT_EQ(decision.rule, "");
}

TEST(Policy, TheFirstRuleThatSpeaksOfItDecides) {
  Policy policy = policy_of(kExample);
  EXPECT_EQ(policy.decide(name("bad.example.com"), 443).reason, "denied_by_rule");
  EXPECT_EQ(policy.decide(name("bad.example.com"), 443).rule, "rules[0]");
  EXPECT_EQ(policy.decide(name("a.example.com"), 8443).rule, "rules[1]");
  EXPECT_TRUE(policy.decide(name("a.example.com"), 8443).allowed());
  EXPECT_EQ(policy.decide(name("a.example.com"), 80).reason, "port_not_allowed");
  EXPECT_EQ(policy.decide(name("git.example.org"), 22).protocol, Protocol::kTcp);
  EXPECT_EQ(policy.decide(name("pypi.org"), 80).rule, "allow[0]");
  EXPECT_FALSE(policy.decide(name("pypi.org"), 22).allowed());
  EXPECT_TRUE(policy.decide(name("db.internal"), 5432).allowed());
  EXPECT_FALSE(policy.decide(name("db.internal"), 443).allowed());
}

TEST(Policy, AnswersNamesThatHaveAPort) {
  Policy policy = policy_of(kExample);
  EXPECT_TRUE(policy.decide_name(name("x.example.com")).allowed());
  EXPECT_FALSE(policy.decide_name(name("bad.example.com")).allowed());
  EXPECT_FALSE(policy.decide_name(name("example.com")).allowed());
  Policy partly = policy_of(R"({"rules":[{"deny":"a.b","ports":[80]}],"allow":["a.b"]})");
  EXPECT_TRUE(partly.decide_name(name("a.b")).allowed());
  EXPECT_FALSE(partly.decide(name("a.b"), 80).allowed());
  EXPECT_TRUE(partly.decide(name("a.b"), 443).allowed());
}

TEST(Policy, DialsOnlyThePublicInternetUnlessARangeSaysSo) {
  Policy policy = policy_of(kExample);
  EXPECT_TRUE(policy.may_dial(address("8.8.8.8"), 443));
  EXPECT_FALSE(policy.may_dial(address("127.0.0.1"), 443));
  EXPECT_FALSE(policy.may_dial(address("10.2.0.1"), 5432));
  EXPECT_TRUE(policy.may_dial(address("10.1.0.1"), 5432));
  EXPECT_FALSE(policy.may_dial(address("10.1.0.1"), 443));
  EXPECT_FALSE(policy.may_dial(address("::ffff:8.8.8.8"), 443));
  Policy wide = policy_of(R"({"allow":["0.0.0.0/0","::/0"]})");
  // Too wide to speak of what is not public; and some things nothing can allow.
  EXPECT_TRUE(wide.decide(address("8.8.8.8"), 443).allowed());
  EXPECT_TRUE(wide.decide(address("2606:4700::1111"), 443).allowed());
  for (const char* text : {"127.0.0.1", "10.0.0.1", "100.64.0.1", "169.254.1.1", "fd00::1", "::1"})
    EXPECT_EQ(wide.decide(address(text), 443).reason, "no_rule") << text;
  for (const char* text : {"169.254.169.254", "fd00:ec2::254", "0.0.0.0", "224.0.0.1", "ff02::1",
                           "255.255.255.255", "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    EXPECT_EQ(wide.decide(address(text), 80).reason, "address_refused") << text;
    EXPECT_FALSE(wide.may_dial(address(text), 80)) << text;
  }
  Policy local = policy_of(R"({"allow":["169.254.0.0/16","127.0.0.0/8","10.0.0.0/8:22"]})");
  EXPECT_TRUE(local.decide(address("169.254.1.1"), 80).allowed());
  EXPECT_FALSE(local.decide(address("169.254.169.254"), 80).allowed());
  EXPECT_TRUE(local.may_dial(address("127.0.0.1"), 80));
  EXPECT_EQ(local.decide(address("10.1.1.1"), 80).reason, "port_not_allowed");
  Policy without = policy_of(R"({"rules":[{"deny":"8.8.8.0/24"}]})");
  EXPECT_FALSE(without.may_dial(address("8.8.8.8"), 443));
}

TEST(Policy, PublicNamesAreAllThatNoRuleDenies) {
  Policy policy = policy_of(
      R"({"public_names": true, "allow": ["pypi.org"],
          "rules": [{"deny": "bad.example.com"}, {"deny": "192.0.2.0/24"}]})");
  EXPECT_EQ(policy.decide(name("pypi.org"), 443).rule, "allow[0]");
  for (auto [host, port] : {std::pair("pypi.org", 22), std::pair("any.example", 5432)}) {
    Decision decision = policy.decide(name(host), static_cast<uint16_t>(port));
    EXPECT_TRUE(decision.allowed()) << host;
    EXPECT_EQ(decision.rule, "public_names");
    EXPECT_EQ(decision.protocol, Protocol::kTcp);
  }
  EXPECT_TRUE(policy.decide_name(name("any.example")).allowed());
  EXPECT_EQ(policy.decide(name("bad.example.com"), 443).reason, "denied_by_rule");
  EXPECT_FALSE(policy.decide_name(name("bad.example.com")).allowed());
  // Of addresses it says nothing: no private one is dialled for a name, none by itself.
  EXPECT_TRUE(policy.may_dial(address("20.0.0.80"), 80));
  for (const char* never : {"10.9.9.9", "127.0.0.1", "169.254.169.254", "192.0.2.7", "fd00::1"})
    EXPECT_FALSE(policy.may_dial(address(never), 80)) << never;
  EXPECT_FALSE(policy.decide(address("20.0.0.80"), 80).allowed());
  EXPECT_EQ(policy_of(policy_text(policy)), policy);
  EXPECT_FALSE(parse_policy_json(R"({"public_names": 1})").ok());
}

TEST(Policy, OpensEachRangeOnce) {
  auto texts = [](std::string_view json) {
    std::string all;
    for (const Cidr& range : policy_of(json).open_ranges()) all += range.string() + " ";
    return all;
  };
  EXPECT_EQ(texts(R"({"allow":["a.b","10.1.0.0/16","10.0.0.0/8:22","10.2.3.4","fd00::/8"]})"),
            "10.0.0.0/8 fd00::/8 ");
  EXPECT_EQ(texts(R"({"rules":[{"deny":"10.0.0.0/8"}],"allow":["10.1.0.0/16"]})"), "10.1.0.0/16 ");
}

TEST(Policy, ExplainsTheSmallestChange) {
  Policy policy = policy_of(kExample);
  EXPECT_EQ(explain(policy, name("pypi.org"), 443).change, "");
  EXPECT_EQ(explain(policy, name("npmjs.org"), 443).change, "add \"npmjs.org\" to allow");
  EXPECT_EQ(explain(policy, name("npmjs.org"), 22).change, "add \"npmjs.org:22\" to allow");
  EXPECT_EQ(explain(policy, name("a.example.com"), 80).change, "add port 80 to rules[1]");
  EXPECT_EQ(explain(policy, name("bad.example.com"), 80).change,
            "remove rules[0], which denies it");
  EXPECT_EQ(explain(policy, address("10.9.0.1"), 22).change, "add \"10.9.0.1:22\" to allow");
  EXPECT_EQ(explain(policy, address("169.254.169.254"), 80).change, "");
}

TEST(Policy, JsonGoesBothWays) {
  Policy policy = policy_of(kExample);
  EXPECT_EQ(policy_of(boost::json::serialize(policy_to_json(policy))), policy);
  EXPECT_EQ(boost::json::serialize(policy_to_json({})), R"({"allow":[]})");
  std::string more = R"({"allow":["a.b"],"rules":[{"allow":"c.d","budget":{"bytes_out":5}}],)"
                     R"("budget":{"connections":2,"requests_per_second":9},"mode":"learn"})";
  EXPECT_EQ(boost::json::serialize(policy_to_json(policy_of(more))), more);
}

TEST(Policy, ErrorsNameTheField) {
  auto field_of = [](std::string_view json) {
    auto policy = parse_policy_json(json);
    EXPECT_FALSE(policy.ok()) << json;
    return policy ? std::string() : policy.error().field();
  };
  EXPECT_EQ(field_of(R"({"allow":["a_b"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":["a.b","*.com"]})"), "network.allow[1]");
  EXPECT_EQ(field_of(R"({"allow":["a.b:0"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":["a.b:65536"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":["10.0.0.1/8"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":["169.254.169.254"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":"a"})"), "network.allow");
  EXPECT_EQ(field_of(R"({"rules":[{}]})"), "network.rules[0]");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","deny":"a.b"}]})"), "network.rules[0]");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","ports":[]}]})"), "network.rules[0].ports");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","ports":[80,80]}]})"), "network.rules[0].ports");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","protocol":"udp"}]})"),
            "network.rules[0].protocol");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","path":"/x"}]})"), "network.rules[0].path");
  EXPECT_EQ(field_of(R"({"other":1})"), "network.other");
  EXPECT_EQ(field_of(R"({"mode":"off"})"), "network.mode");
  EXPECT_EQ(field_of(R"({"budget":{}})"), "network.budget");
  EXPECT_EQ(field_of(R"({"budget":{"bytes":1}})"), "network.budget.bytes");
  EXPECT_EQ(field_of(R"({"budget":{"bytes_out":0}})"), "network.budget.bytes_out");
  EXPECT_EQ(field_of(R"({"rules":[{"allow":"a.b","budget":{"bytes_in":1.5}}]})"),
            "network.rules[0].budget.bytes_in");
  EXPECT_EQ(field_of(R"({"rules":[{"deny":"a.b","budget":{"bytes_in":1}}]})"), "network.rules[0]");
  EXPECT_EQ(field_of(R"({"allow":["224.0.0.0/4"]})"), "network.allow[0]");
  EXPECT_EQ(field_of(R"({"allow":["::ffff:0:0/96"]})"), "network.allow[0]");
  EXPECT_EQ(field_of("[]"), "network");
}

TEST(PolicyFile, MeansWhatTheJsonMeans) {
  auto policy = parse_policy_file(R"(
allow = ["pypi.org", "db.internal:5432", "10.1.0.0/16:5432", "[fd12::/16]:443"]
[[rules]]
deny = "bad.example.com"
[[rules]]
allow = "*.example.com"
ports = [443, 8443]
[[rules]]
allow = "git.example.org"
ports = [22]
protocol = "tcp"
)",
                                  "policy.toml");
  ASSERT_TRUE(policy.ok()) << policy.error().message();
  EXPECT_EQ(*policy, policy_of(kExample));
}

TEST(PolicyFile, IsWrittenAsItIsRead) {
  for (const char* json :
       {kExample, "{}", R"({"mode":"learn","budget":{"bytes_in":3,"connections":1}})",
        R"({"rules":[{"allow":"c.d","ports":[1,2],"budget":{"requests_per_second":7}}]})"}) {
    Policy policy = policy_of(json);
    auto again = parse_policy_file(policy_file_text(policy), "p.toml");
    ASSERT_TRUE(again.ok()) << again.error().message() << "\n" << policy_file_text(policy);
    EXPECT_EQ(*again, policy) << policy_file_text(policy);
  }
}

TEST(PolicyFile, ErrorsNameTheLine) {
  auto message_of = [](std::string_view text) {
    auto policy = parse_policy_file(text, "p.toml");
    return policy ? std::string("none") : policy.error().message();
  };
  EXPECT_NE(message_of("allow = [\"a_b\"]").find("p.toml:1"), std::string::npos);
  EXPECT_NE(message_of("\n[[rules]]\nallow = \"a.b\"\nport = [1]\n").find("ports"),
            std::string::npos);
  EXPECT_NE(message_of("[[rules]]\nallow = \"a.b\"\nports = [70000]\n").find("p.toml:3"),
            std::string::npos);
  EXPECT_NE(message_of("[[rules]]\ndeny = \"a.b\"\nprotocol = \"tls\"\n"), "none");
}

constexpr const char* kInspected = R"({
  "rules": [{"allow": "api.example.com", "inspect": true, "methods": ["GET"], "paths": ["/v1/**"]},
            {"allow": "api.example.com", "inspect": true, "methods": ["POST"], "paths": ["/run"]},
            {"deny": "api.example.com"}, {"allow": "open.example.com", "inspect": true}]})";

TEST(Policy, InspectedRequestsAreDecidedByMethodAndPath) {
  Policy policy = policy_of(kInspected);
  EXPECT_TRUE(policy.inspects());
  EXPECT_TRUE(policy.decide(name("api.example.com"), 443).is_inspected);
  auto decide = [&](std::string_view method, std::string_view path) {
    return policy.decide_request(name("api.example.com"), 443, method, path);
  };
  EXPECT_EQ(decide("GET", "/v1/a").rule, "rules[0]");
  EXPECT_TRUE(decide("GET", "/v1/a").allowed());
  EXPECT_EQ(decide("POST", "/run").rule, "rules[1]");
  EXPECT_TRUE(decide("POST", "/run").allowed());
  EXPECT_EQ(decide("POST", "/v1/a").reason, "request_not_allowed");
  EXPECT_EQ(decide("GET", "/run").reason, "request_not_allowed");
  EXPECT_EQ(decide("GET", "/v1/../run").reason, "bad_path");
  EXPECT_EQ(decide("GET", "/v1/%2e%2e/run").reason, "bad_path");
  Decision open = policy.decide_request(name("open.example.com"), 443, "PUT", "/a/../b");
  EXPECT_TRUE(open.allowed());
}

TEST(Policy, InspectionIsTheSameInEveryForm) {
  Policy policy = policy_of(kInspected);
  EXPECT_EQ(policy_of(policy_text(policy)), policy);
  auto again = parse_policy_file(policy_file_text(policy), "p.toml");
  ASSERT_TRUE(again.ok()) << policy_file_text(policy);
  EXPECT_EQ(*again, policy);
  auto file = parse_policy_file(R"(
[[rules]]
allow = "api.example.com"
inspect = true
methods = ["GET"]
paths = ["/v1/**"]
)",
                                "p.toml");
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->rules[0], policy.rules[0]);
  for (const char* text : {"methods = [\"GET\"]", "inspect = true\nmethods = []",
                           "inspect = true\nprotocol = \"tcp\"", "inspect = true\npaths = [\"x\"]"})
    EXPECT_FALSE(parse_policy_file("[[rules]]\nallow = \"a.b\"\n" + std::string(text), "p").ok())
        << text;
}

TEST(Policy, ABudgetIsOfTheOnlyRuleForItsHosts) {
  const std::string some = R"({"allow": "api.a.b", "inspect": true, "methods": ["GET"]})";
  const std::string counted =
      R"({"allow": "api.a.b", "inspect": true, "methods": ["GET"], "budget": {"connections": 1}})";
  auto is_fine = [](const std::string& one, const std::string& other) {
    auto policy = parse_policy_json("{\"rules\":[" + one + "," + other + "]}");
    if (!policy) {
      EXPECT_EQ(policy.error().field(), "network.rules");
      EXPECT_EQ(policy.error().reason(), "invalid_network_rule");
      return false;
    }
    EXPECT_TRUE(parse_policy_file(policy_file_text(*policy), "p.toml").ok());
    return true;
  };
  EXPECT_FALSE(is_fine(some, counted));
  EXPECT_FALSE(is_fine(counted, some));
  EXPECT_FALSE(is_fine(counted, R"({"allow": "api.a.b"})"));
  EXPECT_FALSE(is_fine(counted, R"({"allow": "*.a.b"})"));
  EXPECT_FALSE(is_fine(R"({"allow": "*.a.b", "inspect": true, "paths": ["/x"]})", counted));
  const std::string wild = R"({"allow": "*.b.c", "inspect": true, "paths": ["/x"]})";
  EXPECT_FALSE(is_fine(wild, R"({"allow": "*.a.b.c", "budget": {"bytes_in": 1}})"));
  EXPECT_FALSE(is_fine(wild, R"({"allow": "*.b.c", "budget": {"bytes_in": 1}})"));
  EXPECT_TRUE(is_fine(wild, R"({"allow": "b.c", "budget": {"bytes_in": 1}})"));
  EXPECT_TRUE(is_fine(wild, R"({"allow": "10.0.0.0/8", "budget": {"bytes_in": 1}})"));
  EXPECT_TRUE(is_fine(counted, R"({"allow": "api.a.b", "ports": [8443]})"));
  EXPECT_TRUE(is_fine(counted, R"({"deny": "api.a.b"})"));
  EXPECT_TRUE(is_fine(R"({"allow": "api.a.b"})", counted));  // which leaves nothing to it
  EXPECT_TRUE(is_fine(some, some));
  auto file = parse_policy_file(
      "[[rules]]\nallow = \"a.b\"\ninspect = true\nmethods = [\"GET\"]\n"
      "[[rules]]\nallow = \"a.b\"\nbudget = {connections = 1}\n",
      "p.toml");
  EXPECT_FALSE(file.ok());
}

TEST(Policy, InspectionThatCannotBeIsRefused) {
  for (const char* rule :
       {R"({"deny": "a.b", "inspect": true})", R"({"allow": "a.b", "methods": ["GET"]})",
        R"({"allow": "a.b", "inspect": true, "protocol": "tcp"})",
        R"({"allow": "10.0.0.0/8", "inspect": true})", R"({"allow": "a.b", "inspect": 1})",
        R"({"allow": "a.b", "inspect": true, "methods": []})",
        R"({"allow": "a.b", "inspect": true, "paths": ["a"]})",
        R"({"allow": "a.b", "inspect": true, "paths": "/a"})"})
    EXPECT_FALSE(parse_policy_json("{\"rules\":[" + std::string(rule) + "]}").ok()) << rule;
}

}  // namespace
}  // namespace atl::egress
