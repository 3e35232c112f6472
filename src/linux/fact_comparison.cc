#include "linux/fact_comparison.h"

#include <algorithm>

namespace atl::linux {

const std::string* find_fact(const Facts& facts, std::string_view name) {
  auto found = std::find_if(facts.begin(), facts.end(),
                            [name](const Fact& fact) { return fact.name == name; });
  return found == facts.end() ? nullptr : &found->value;
}

Error facts_differ(const std::string& name, const std::string& outside, const std::string& inside) {
  std::string message = "receipt: " + name + ": outside " + outside.substr(0, 80) + ", inside " +
                        inside.substr(0, 80);
  return Error::from_errno(message, EBADE);
}

Result<std::vector<ComparedFact>> compare_facts(const Facts& outside, const Facts& inside) {
  std::vector<ComparedFact> lines;
  for (const Fact& fact : outside) {
    const std::string* seen = find_fact(inside, fact.name);
    if (seen == nullptr || *seen != fact.value)
      return facts_differ(fact.name, fact.value, seen ? *seen : kNobody);
    lines.push_back({fact.name, fact.value, *seen});
  }
  for (const Fact& fact : inside)
    if (find_fact(outside, fact.name) == nullptr) lines.push_back({fact.name, kNobody, fact.value});
  return lines;
}

Result<void> check_demands(const Facts& facts, const Facts& wanted) {
  for (const Fact& demand : wanted) {
    const std::string* found = find_fact(facts, demand.name);
    if (!found || *found != demand.value)
      return facts_differ(demand.name + " shall be " + demand.value, found ? *found : kNobody,
                          kNobody);
  }
  return {};
}

Result<void> check_other_namespaces(const Facts& own, const Facts& facts) {
  for (const Fact& fact : own) {
    const std::string* theirs = find_fact(facts, fact.name);
    bool absent = fact.name == "namespaces.time" && fact.value == "none";
    if (!absent && (theirs == nullptr || *theirs == fact.value))
      return facts_differ(fact.name, fact.value, theirs ? *theirs : "none");
  }
  return {};
}

Result<void> check_landlock_layers(const Facts& inside) {
  const std::string* version = find_fact(inside, "landlock.version");
  const std::string* layers = find_fact(inside, "landlock.layers");
  if (!version || !layers) return Error::from_errno("the probe does not tell of Landlock", EPROTO);
  std::string wanted = *version == "0" ? "0" : "1";
  if (*layers != wanted) return facts_differ("landlock.layers", wanted, *layers);
  return {};
}

}  // namespace atl::linux
