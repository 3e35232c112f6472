// Installing built templates into the state directory and listing them. An image is copied, not
// linked, so that nothing that happens to the build directory reaches a file the kernel has
// mounted.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const AddTemplateCommand& add);
Result<int> run_command(const CommandLine& line, const ListTemplatesCommand&);

struct InstalledTemplate {
  std::string name;
  Digest image;
};

// The name in the text of a template.toml; `path` is for messages.
Result<std::string> read_template_name(const std::string& manifest, const std::string& path);

// `directory` holds template.toml, image.erofs and digest. The image must have that digest; state
// under `places` changes in one step, or not at all.
Result<InstalledTemplate> install_template(const Places& places, const std::string& directory);

}  // namespace atl::cli
