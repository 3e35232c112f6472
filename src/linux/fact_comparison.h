// Facts about one process as two sides see them (linux/process_facts.h), held against each other
// and against what must be so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "linux/process_facts.h"

namespace atl::linux {

inline constexpr const char* kNobody = "-";  // this side cannot see it

struct ComparedFact {
  std::string name, outside, inside;
};

// Null: there is no such fact.
const std::string* find_fact(const Facts& facts, std::string_view name);

Error facts_differ(const std::string& name, const std::string& outside, const std::string& inside);

// All facts of both; an error unless what is seen from outside is seen so from inside.
Result<std::vector<ComparedFact>> compare_facts(const Facts& outside, const Facts& inside);

// Every wanted fact is there with its value.
Result<void> check_demands(const Facts& facts, const Facts& wanted);

// Every kind of namespace is another than the reader's own; only that of time may be missing.
Result<void> check_other_namespaces(const Facts& own, const Facts& facts);

// Exactly one ruleset, where the kernel has Landlock.
Result<void> check_landlock_layers(const Facts& inside);

}  // namespace atl::linux
