// Policy files and policies of the API: what is accepted must come out of its own text again.
#include <cstdint>

#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "egress/policy_file.h"
#include "egress/policy_json.h"

using namespace atl::egress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (auto policy : {parse_policy_file(text, "fuzz"), parse_policy_json(text)}) {
    if (!policy) continue;
    auto again = parse_policy_json(boost::json::serialize(policy_to_json(*policy)));
    ATOLL_CHECK(again.ok() && *again == *policy);
    ATOLL_CHECK(!policy->may_dial(*Address::parse("169.254.169.254"), 80));
  }
  return 0;
}
