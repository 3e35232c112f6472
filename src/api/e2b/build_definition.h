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
  std::vector<std::string> tags;
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

// "name" or "name:tag"; without a tag, "default".
struct TaggedName {
  std::string name, tag;
};
Result<TaggedName> parse_tagged(std::string_view text);
Result<void> check_tags(const std::vector<std::string>& tags);

}  // namespace atl::api::e2b
