#include "sandbox/floor.h"

#include <algorithm>
#include <string>

namespace atl::sandbox {
namespace {

using store::Isolation;

// The only driver so far.
constexpr Isolation kStrongest = Isolation::kJail;

}  // namespace

Result<void> check_floor(const store::TemplateDefaults& defaults, std::optional<Isolation> asked) {
  Isolation wanted = std::max(defaults.isolation, asked.value_or(Isolation::kJail));
  if (wanted > kStrongest) {
    std::string who = wanted > asked.value_or(Isolation::kJail) ? "the template" : "the request";
    return Error(Code::kUnsupported, who + " asks for " + std::string(isolation_name(wanted)) +
                                         ", and this host offers " +
                                         std::string(isolation_name(kStrongest)))
        .with_reason("isolation_unavailable")
        .with_field("isolation");
  }
  if (defaults.persistence == store::Persistence::kEphemeral) return {};
  return Error(Code::kUnsupported, "the template asks for sandboxes that outlive their end")
      .with_reason("persistence_unavailable")
      .with_field("template");
}

}  // namespace atl::sandbox
