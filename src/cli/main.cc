// The atoll program: reads the command line, runs one command, ends with its exit code.
#include <signal.h>
#include <stdio.h>

#include <algorithm>

#include "cli/backup/backup.h"
#include "cli/backup/restore.h"
#include "cli/bench_command.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/doctor/doctor.h"
#include "cli/egress_commands.h"
#include "cli/exec_commands.h"
#include "cli/exit_code.h"
#include "cli/file_commands.h"
#include "cli/host_commands.h"
#include "cli/key_commands.h"
#include "cli/readable.h"
#include "cli/receipt_commands.h"
#include "cli/repl_command.h"
#include "cli/run_command.h"
#include "cli/sandbox_commands.h"
#include "cli/secret_commands.h"
#include "cli/selftest/selftest.h"
#include "cli/shell_command.h"
#include "cli/state_commands.h"
#include "cli/template_commands.h"
#include "cli/template_pack_commands.h"
#include "cli/tenant_commands.h"
#include "cli/terminal.h"
#include "cli/volume_commands.h"

namespace atl::cli {

using backup::run_command;
using selftest::run_command;

namespace {

namespace json = boost::json;

Result<int> run_command(const CommandLine&, const HelpCommand& help) {
  printf("%s", help.text.c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const VersionCommand&) {
  printf(line.format == Format::kJson ? "{\"version\":\"%s\"}\n" : "atoll %s\n", ATOLL_VERSION);
  return 0;
}

void print_error(const Error& error) {
  fprintf(stderr, "atoll: %s\n", escape_controls(error.message()).c_str());
}

// With --json something always parses.
void print_error_json(const Error& error) {
  std::string message = error.message();
  json::object object;
  object["code"] = error.reason().empty() ? std::string(code_name(error.code())) : error.reason();
  constexpr std::string_view kRemedy = "\n  remedy: ";
  size_t remedy = message.find(kRemedy);
  object["message"] = message.substr(0, remedy);
  if (remedy != message.npos) object["remedy"] = message.substr(remedy + kRemedy.size());
  print_json(json::object{{"error", std::move(object)}});
}

int run(std::vector<std::string> arguments) {
  bool wants_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  auto line = parse_command_line(std::move(arguments));
  if (!line) {
    if (wants_json) print_error_json(line.error());
    print_error(line.error());
    fprintf(stderr, "  remedy: atoll help\n");
    return kExitUsage;
  }
  auto exit_code =
      std::visit([&](const auto& command) { return run_command(*line, command); }, line->command);
  // Output that went nowhere was not printed, even if the program ended well.
  if (exit_code && fflush(stdout) == 0) return *exit_code;
  // As if SIGPIPE had ended us, which says it best: nobody reads any more.
  if (!exit_code && exit_code.error().system_errno() == EPIPE) return 128 + SIGPIPE;
  if (exit_code) return errno == EPIPE ? 128 + SIGPIPE : kExitPlatform;
  if (line->format == Format::kJson) print_error_json(exit_code.error());
  print_error(exit_code.error());
  return kExitPlatform;
}

}  // namespace
}  // namespace atl::cli

int main(int count, char** values) {
  // Writing to a reader that went away is an error to report, not a death.
  signal(SIGPIPE, SIG_IGN);
  return atl::cli::run(std::vector<std::string>(values + 1, values + count));
}
