// What the user asked for, one type for each command.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/backup_request.h"
#include "cli/egress_request.h"
#include "cli/limits.h"
#include "cli/listen_address.h"
#include "cli/state_request.h"
#include "cli/template_request.h"
#include "cli/tenant_request.h"
#include "cli/terminal.h"
#include "cli/tls_options.h"
#include "cli/volume_request.h"

namespace atl::cli {

enum class Depth : unsigned char { kFlat, kRecursive };

struct UpCommand {
  enum class Mode : unsigned char { kForeground, kDetached };
  enum class Reach : unsigned char { kLoopbackOnly, kAnywhere };
  enum class Stop : unsigned char { kRemoves, kKeeps };
  enum class Orphans : unsigned char { kRefuse, kAdopt };  // files of another database
  Mode mode = Mode::kForeground;
  Reach reach = Reach::kLoopbackOnly;
  bool warm_pool = true;
  uint64_t pool_bytes = 0;  // of one that has to be made; 0: as much as is sensible
  std::optional<int> kvm_trial_seconds = {};
  std::string gvisor_platform = {};  // or the first that runs
  // For tests: the warden's --kernel-memory-growth, in bytes.
  std::optional<uint64_t> kernel_memory_growth = {};
  Stop stop = Stop::kRemoves;  // what SIGTERM does to sandboxes
  Orphans orphans = Orphans::kRefuse;
  ListenAddress listen;
  TlsOptions tls;
  // This process is a supervisor that was asked to replace programs and has executed the installed
  // `atoll` over itself: it has its lock, its children and, if kDetached, its log. 0: all.
  std::optional<int> resumed_for;
};
struct RestartCommand {
  enum class What : unsigned char { kBoth = 0, kWarden = 1, kDaemon = 2 };
  What what = What::kBoth;
};
struct DownCommand {};
struct StatusCommand {};
struct DoctorCommand {};
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
  SandboxOptions sandbox;           // an empty template: by the name or the first line of the file
  std::optional<std::string> code;  // else `file`
  std::string file;                 // "-" is standard input; empty: standard input or a mistake
  std::vector<std::string> arguments;
  std::string input;               // a file or "-"; empty: none
  std::vector<std::string> files;  // LOCAL:REMOTE
  std::string output_directory;    // empty: leave the artifacts
  ExecOptions exec;
  ShowOutput show;
};
struct CreateCommand {
  SandboxOptions sandbox;
};
struct ListCommand {
  enum class What : unsigned char { kUsable, kAll };
  What what = What::kUsable;
  enum class Columns : unsigned char { kTable, kIds };
  Columns columns = Columns::kTable;
  std::string state;
  std::vector<std::string> metadata;  // KEY:VALUE
};
struct ShowCommand {
  std::string id;
};
struct RemoveCommand {
  enum class What : unsigned char { kNamed, kAll };
  What what = What::kNamed;
  enum class Confirm : unsigned char { kAsk, kYes };
  Confirm confirm = Confirm::kAsk;
  std::vector<std::string> ids;
};
struct UsageCommand {
  std::string id;  // empty: all that the tenant of the key has used
};
struct ExecCommand {
  std::string id;
  std::vector<std::string> command;
  enum class Input : unsigned char { kNone, kStandardInput };
  Input input = Input::kNone;
  enum class Mode : unsigned char { kFollow, kTerminal, kDetached };
  Mode mode = Mode::kFollow;
  ExecOptions exec;
  ShowOutput show;
};
struct ShellCommand {
  std::string id;
  std::string attach;  // the exec to go back to; empty: a new shell
  OutputMode mode = OutputMode::kSafe;
  ExecOptions exec;
};
struct ReplCommand {
  std::string id;          // empty: a sandbox of its own
  SandboxOptions sandbox;  // then
  std::string language;    // empty: by the template
};
struct LogsCommand {
  std::string id;
  std::string exec;
  enum class Until : unsigned char { kNow, kEnd };
  Until until = Until::kNow;
  OutputMode mode = OutputMode::kSafe;
};
// A path inside a sandbox.
struct RemotePath {
  std::string sandbox;
  std::string path;
};
struct CopyCommand {
  std::string from;  // one of the two is ID:PATH
  std::string to;
  Depth depth = Depth::kFlat;
  std::string user;
};
struct CatCommand {
  RemotePath file;
  OutputMode mode = OutputMode::kSafe;
};
struct ListFilesCommand {
  RemotePath directory;
  Depth depth = Depth::kFlat;
  enum class Columns : unsigned char { kNames, kLong };
  Columns columns = Columns::kNames;
};
struct WatchCommand {
  RemotePath path;
  Depth depth = Depth::kFlat;
};
struct PortsCommand {
  std::string id;
  std::optional<uint16_t> open;
  std::optional<std::chrono::milliseconds> expires;
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
  std::string isolation;          // the wall; empty: the jail
};
struct BenchCommand {
  std::string template_name;
  unsigned count = 0;
};
struct CompletionCommand {
  std::string shell;  // bash | zsh | fish
};
struct VersionCommand {};
struct HelpCommand {
  std::string text;
};

using Command =
    std::variant<HelpCommand, UpCommand, DownCommand, RestartCommand, StatusCommand, DoctorCommand,
                 ShowKeyCommand, CreateKeyCommand, ListKeysCommand, RevokeKeyCommand, BackupCommand,
                 RestoreCommand, AddTemplateCommand, ListTemplatesCommand, BuildTemplateCommand,
                 ShowTemplateCommand, RemoveTemplateCommand, ExportTemplateCommand,
                 ImportTemplateCommand, InitTemplateCommand, RunCommand, CreateCommand, ListCommand,
                 ShowCommand, RemoveCommand, UsageCommand, ExecCommand, ShellCommand, LogsCommand,
                 CopyCommand, CatCommand, ListFilesCommand, WatchCommand, PortsCommand,
                 ShowReceiptCommand, VerifyReceiptCommand, EgressCommand, SetSecretCommand,
                 ListSecretsCommand, RemoveSecretCommand, ReplCommand, SelftestCommand,
                 BenchCommand, CompletionCommand, VersionCommand, PauseCommand, SnapshotCommand,
                 ForkCommand, RollbackCommand, DiffCommand, SetTenantCommand, ListTenantsCommand,
                 VolumeCommand, ReplayCommand>;

}  // namespace atl::cli
