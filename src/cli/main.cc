// The atoll program: reads the command line, runs one command, ends with its exit code.
#include <signal.h>
#include <stdio.h>

#include "cli/command_line.h"
#include "cli/doctor/doctor.h"
#include "cli/exec_commands.h"
#include "cli/exit_code.h"
#include "cli/host_commands.h"
#include "cli/key_commands.h"
#include "cli/receipt_commands.h"
#include "cli/sandbox_commands.h"
#include "cli/selftest/selftest.h"
#include "cli/template_commands.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

struct Runner {
  const CommandLine& line;

  Result<int> operator()(const HelpCommand& help) const {
    printf("%s", help.text.c_str());
    return 0;
  }
  Result<int> operator()(const VersionCommand&) const {
    printf(line.format == Format::kJson ? "{\"version\":\"%s\"}\n" : "atoll %s\n", ATOLL_VERSION);
    return 0;
  }
  Result<int> operator()(const UpCommand& up) const { return run_up(line, up); }
  Result<int> operator()(const DownCommand&) const { return run_down(line); }
  Result<int> operator()(const StatusCommand&) const { return run_status(line); }
  Result<int> operator()(const DoctorCommand&) const { return run_doctor(line); }
  Result<int> operator()(const ShowKeyCommand&) const { return run_show_key(line); }
  Result<int> operator()(const CreateKeyCommand& create) const {
    return run_create_key(line, create);
  }
  Result<int> operator()(const ListKeysCommand&) const { return run_list_keys(line); }
  Result<int> operator()(const RevokeKeyCommand& revoke) const {
    return run_revoke_key(line, revoke);
  }
  Result<int> operator()(const AddTemplateCommand& add) const {
    return run_add_template(line, add);
  }
  Result<int> operator()(const ListTemplatesCommand&) const { return run_list_templates(line); }
  Result<int> operator()(const RunCommand& run) const { return run_run(line, run); }
  Result<int> operator()(const ExecCommand& exec) const { return run_exec(line, exec); }
  Result<int> operator()(const CreateCommand& create) const { return run_create(line, create); }
  Result<int> operator()(const ListCommand&) const { return run_list(line); }
  Result<int> operator()(const ShowCommand& show) const { return run_show(line, show); }
  Result<int> operator()(const ShowReceiptCommand& show) const {
    return run_show_receipt(line, show);
  }
  Result<int> operator()(const VerifyReceiptCommand& verify) const {
    return run_verify_receipt(line, verify);
  }
  Result<int> operator()(const SelftestCommand& selftest) const {
    return selftest::run_selftest(line, selftest);
  }
  Result<int> operator()(const RemoveCommand& remove) const { return run_remove(line, remove); }
};

void print_error(const Error& error) {
  fprintf(stderr, "atoll: %s\n", escape_controls(error.message()).c_str());
}

int run(std::vector<std::string> arguments) {
  auto line = parse_command_line(std::move(arguments));
  if (!line) {
    print_error(line.error());
    fprintf(stderr, "  remedy: atoll help\n");
    return kExitUsage;
  }
  auto exit_code = std::visit(Runner{*line}, line->command);
  if (exit_code) return *exit_code;
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
