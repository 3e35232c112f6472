// What the user asked for, as typed values: the only reader of argv, and the only user of CLI11.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/limits.h"
#include "cli/listen_address.h"
#include "cli/places.h"
#include "cli/server.h"
#include "cli/terminal.h"

namespace atl::cli {

enum class Format : unsigned char { kText, kJson };
enum class Verbosity : unsigned char { kQuiet, kVerbose };

struct UpCommand {
  enum class Mode : unsigned char { kForeground, kDetached };
  enum class Reach : unsigned char { kLoopbackOnly, kAnywhere };
  Mode mode = Mode::kForeground;
  Reach reach = Reach::kLoopbackOnly;
  ListenAddress listen;
};
struct DownCommand {};
struct StatusCommand {};
struct DoctorCommand {};
struct ShowKeyCommand {};
struct CreateKeyCommand {
  std::string tenant;  // empty: the tenant of this host
  std::string name;
};
struct ListKeysCommand {};
struct RevokeKeyCommand {
  std::string id;
};
struct AddTemplateCommand {
  std::string directory;
};
struct ListTemplatesCommand {};
// How the output of a program is shown.
struct ShowOutput {
  OutputMode mode = OutputMode::kSafe;
  Verbosity verbosity = Verbosity::kQuiet;
};
struct RunCommand {
  SandboxOptions sandbox;
  std::optional<std::string> code;  // else `file`, and "-" is standard input
  std::string file;
  std::chrono::milliseconds timeout{0};
  std::optional<std::string> on_output_limit;  // "cut" | "kill"
  ShowOutput show;
};
struct CreateCommand {
  SandboxOptions sandbox;
};
struct ListCommand {};
struct ShowCommand {
  std::string id;
};
struct RemoveCommand {
  std::vector<std::string> ids;
};
struct ExecCommand {
  std::string id;
  std::vector<std::string> command;
  std::chrono::milliseconds timeout{0};
  ExecLimits limits;
  std::optional<std::string> on_output_limit;  // "cut" | "kill"
  ShowOutput show;
};
struct ShowReceiptCommand {
  std::string id;
};
struct VerifyReceiptCommand {
  std::string file;        // "-" is standard input
  std::string public_key;  // a file or the key itself; empty: this host's
};
struct SelftestCommand {
  enum class Mode : unsigned char { kRun, kList };
  Mode mode = Mode::kRun;
  std::vector<std::string> only;  // names of victims; empty: all
};
struct VersionCommand {};
struct HelpCommand {
  std::string text;
};

using Command = std::variant<HelpCommand, UpCommand, DownCommand, StatusCommand, DoctorCommand,
                             ShowKeyCommand, AddTemplateCommand, ListTemplatesCommand, RunCommand,
                             CreateCommand, ListCommand, ShowCommand, RemoveCommand, ExecCommand,
                             ShowReceiptCommand, VerifyReceiptCommand, SelftestCommand,
                             VersionCommand, CreateKeyCommand, ListKeysCommand, RevokeKeyCommand>;

struct CommandLine {
  Places places;
  ServerChoice server;
  Format format = Format::kText;
  Command command;
};

// `arguments` without the program's name. Every error is one of usage.
Result<CommandLine> parse_command_line(std::vector<std::string> arguments);

}  // namespace atl::cli
