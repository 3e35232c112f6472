// What E2B's clients ask to be built, as a template of ours: the text of template.toml, and the
// archives that its steps copy from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "sandbox/templates.h"

namespace atl::api::e2b {

// The template to be, as a client has announced it.
struct AnnouncedTemplate {
  std::string name;
  uint32_t cpu_millis = 0;    // 0: as of what it grows from
  uint64_t memory_bytes = 0;  // the same
  uint64_t disk_bytes = 0;    // at least
};
// Body of POST /v3/templates.
Result<AnnouncedTemplate> parse_announced(std::string_view body);

struct BuildDefinition {
  std::string manifest;
  // The n-th goes to files/tmp/atoll-copy/<n>.tar.
  std::vector<Digest> archives;
  bool anew = false;
};
// Body of POST /v2/templates/{template}/builds/{build}.
Result<BuildDefinition> parse_definition(std::string_view body, const AnnouncedTemplate& announced,
                                         sandbox::Templates& templates, store::TenantId tenant);

// "name" of "name:default"; kUnsupported for any other tag.
Result<std::string> untagged(std::string_view name);

}  // namespace atl::api::e2b
