// Building templates and moving them between hosts.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const BuildTemplateCommand& build);
Result<int> run_command(const CommandLine& line, const ShowTemplateCommand& show);
Result<int> run_command(const CommandLine& line, const RemoveTemplateCommand& remove);
Result<int> run_command(const CommandLine& line, const ExportTemplateCommand& exported);
Result<int> run_command(const CommandLine& line, const ImportTemplateCommand& imported);
Result<int> run_command(const CommandLine& line, const InitTemplateCommand& init);

// The text of template.toml in an uncompressed tar.
Result<std::string> find_manifest_in_pack(int file);

}  // namespace atl::cli
