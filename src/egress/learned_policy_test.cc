#include "egress/learned_policy.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "egress/policy_json.h"

namespace atl::egress {
namespace {

LearnedPolicy learn(std::initializer_list<const char*> rows) {
  LearnedPolicy learned;
  for (const char* row : rows) learned.add(boost::json::parse(row).get_object());
  return learned;
}

TEST(LearnedPolicy, IsTheSmallestForWhatWasDenied) {
  LearnedPolicy learned = learn(
      {R"({"event":"dns","decision":"deny","name":"b.example","reason":"learning"})",
       R"({"event":"dns","decision":"deny","name":"only.asked","reason":"no_rule"})",
       R"({"event":"connect","decision":"deny","name":"b.example","port":443,"protocol":"tls",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"b.example","port":443,"protocol":"tls",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"a.example","port":80,"protocol":"http",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"a.example","port":443,"protocol":"tls",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"a.example","port":8443,"protocol":"tls",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"git.example","port":22,"protocol":"tcp",
           "reason":"learning"})",
       R"({"event":"connect","decision":"deny","name":"odd.example","port":443,"protocol":"http",
           "reason":"learning"})",
       R"({"event":"connect","decision":"allow","name":"known.example","port":443})",
       R"({"event":"packet","decision":"deny","address":"10.0.0.5","port":5432,"protocol":"tcp",
           "reason":"not_a_name"})",
       R"({"event":"packet","decision":"deny","address":"20.0.0.1","port":443,"protocol":"tcp"})",
       R"({"event":"packet","decision":"deny","address":"20.0.0.1","port":443,"protocol":"udp"})",
       R"({"event":"packet","decision":"deny","address":"169.254.169.254","port":80,
           "protocol":"tcp"})",
       R"({"event":"connect","decision":"deny","name":"bad.example","port":80,"protocol":"tcp",
           "reason":"denied_by_rule"})"});
  EXPECT_EQ(policy_text(learned.policy()),
            R"({"allow":["20.0.0.1/32:443","a.example","a.example:8443","b.example:443",)"
            R"("only.asked"],"rules":[{"allow":"10.0.0.5/32","ports":[5432],"protocol":"tcp"},)"
            R"({"allow":"git.example","ports":[22],"protocol":"tcp"},)"
            R"({"allow":"odd.example","ports":[443],"protocol":"http"}]})");
  EXPECT_EQ(learned.impossible(),
            (std::set<std::string>{"denied_by_rule: bad.example", "tcp 169.254.169.254:80",
                                   "udp 20.0.0.1:443"}));
  EXPECT_TRUE(parse_policy_json(policy_text(learned.policy())).ok());
}

TEST(LearnedPolicy, RequestsOfInspectedHostsAreAllowedByMethodAndPath) {
  LearnedPolicy learned =
      learn({R"({"event":"request","decision":"deny","name":"api.example","port":443,"method":"GET",
           "path":"/b","protocol":"tls","reason":"request_not_allowed"})",
             R"({"event":"request","decision":"deny","name":"api.example","port":443,"method":"GET",
           "path":"/%61","protocol":"tls","reason":"request_not_allowed"})",
             R"({"event":"connect","decision":"deny","name":"api.example","port":80,"method":"POST",
           "path":"/run","protocol":"http","reason":"request_not_allowed"})",
             R"({"event":"request","decision":"deny","name":"api.example","port":443,"method":"GET",
           "path":"/all/*","protocol":"tls","reason":"request_not_allowed"})",
             R"({"event":"request","decision":"deny","name":"api.example","port":443,"method":"GET",
           "path":"/../x","protocol":"tls","reason":"bad_path"})"});
  EXPECT_EQ(policy_text(learned.policy()),
            R"({"allow":[],"rules":[{"allow":"api.example","ports":[80],"inspect":true,)"
            R"("methods":["POST"],"paths":["/run"]},{"allow":"api.example","ports":[443],)"
            R"("inspect":true,"methods":["GET"],"paths":["/a","/b"]}]})");
  EXPECT_EQ(learned.impossible(),
            (std::set<std::string>{"bad_path: api.example",
                                   "request_not_allowed: GET api.example/all/*"}));
}

TEST(LearnedPolicy, RowsThatMeanNothingAreLeftOut) {
  LearnedPolicy learned = learn(
      {"{}", R"({"event":"connect","decision":"deny","reason":"learning"})",
       R"({"event":"connect","decision":"deny","reason":"learning","name":"a b","port":99999})",
       R"({"event":"dns","decision":"deny","reason":"learning","name":"\u0000"})"});
  EXPECT_EQ(learned.policy(), Policy());
}

}  // namespace
}  // namespace atl::egress
