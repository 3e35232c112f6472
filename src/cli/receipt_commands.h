// `atoll receipt`: what was enforced for a sandbox, and the check of who says so.
#pragma once

#include "cli/command_line.h"

namespace atl::cli {

Result<int> run_command(const CommandLine& line, const ShowReceiptCommand& show);
Result<int> run_command(const CommandLine& line, const VerifyReceiptCommand& verify);

}  // namespace atl::cli
