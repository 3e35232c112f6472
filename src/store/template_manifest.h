// template.toml: what a template is made of and what its sandboxes get when the caller does not
// say. Parsed strictly: an unknown key, a wrong type or unit, or a value out of bounds is an error
// with file, line and the nearest valid key. A value that later becomes an argument of another
// program (a package, a suite, an archive) is checked here to be one, so that it cannot be read as
// an option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/go_program.h"
#include "store/language_run.h"

namespace atl::store {

struct DebianSource {
  std::string suite;
  std::vector<std::string> packages;
};
struct OciSource {
  std::string reference;
};
struct OciArchiveSource {
  std::string path;  // relative to the template's folder
};
struct OciLayoutSource {
  std::string path;  // a directory, relative to the template's folder
};
struct RootfsTarSource {
  std::string path;  // relative to the template's folder
};
// Another template of the same tenant or of this host: its image, and what is said of nothing else.
struct TemplateSource {
  std::string reference;  // name or name@sha256:…
};
// None: the image is what is added to it, and nothing else.
struct EmptySource {};
using ImageSource = std::variant<DebianSource, OciSource, OciArchiveSource, OciLayoutSource,
                                 RootfsTarSource, TemplateSource, EmptySource>;

// Of the registry that the host's npm is configured for, checked by its digest.
struct NpmPackage {
  std::string name;
  std::string version;
  std::string integrity;  // sha512-<base 64>, as npm writes it
};

struct ContextRuntime {
  std::string language;
  std::vector<std::string> preload;
};

enum class Isolation : unsigned char { kJail, kGvisor, kMicrovm };  // the stronger, the greater
std::string_view isolation_name(Isolation isolation);
std::optional<Isolation> parse_isolation(std::string_view name);

// How long a create may take at most, where nothing is ready; so how strong a wall may be that
// nobody names. docs/isolation.md has what each costs.
enum class Latency : unsigned char { kInstant, kFast, kAny };
std::string_view latency_name(Latency latency);
Isolation strongest_within(Latency latency);

enum class Persistence : unsigned char { kEphemeral, kPersistent, kCheckpoint };
enum class OutputMode : unsigned char { kText, kRich };
// What an image is for: sandboxes start from it, have it at /opt/atoll, or are machines that its
// programs run. The packages of a toolbox are unpacked as they are: nothing they depend on comes
// along, nothing of them is run.
enum class TemplateKind : unsigned char { kRoot, kToolbox, kMonitor };

struct TemplateDefaults {
  Isolation isolation = Isolation::kJail;  // the floor
  Latency latency = Latency::kInstant;     // the floor stands, whatever this is
  Persistence persistence = Persistence::kEphemeral;
  uint64_t ttl_ms = 5 * 60 * 1000;  // 0: none
  uint64_t idle_ttl_ms = 0;         // 0: none
  uint32_t cpu_millis = 1000;
  uint64_t memory_bytes = 512ull << 20;
  uint64_t disk_bytes = 1ull << 30;
  uint32_t pids = 256;
  uint64_t output_bytes = 64ull << 20;
  uint32_t open_files = 1024;
  uint64_t disk_bytes_per_second = 0;  // 0: not limited
  uint32_t cpu_time_ms = 0;            // of each exec; 0: not limited
  // Of each exec, where nobody says anything else.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string user = "user";
  std::string directory = {};  // empty: the user's home
};

// Run by a shell in every sandbox that is made of the template, as its usual user. The sandbox is
// there when `ready` succeeds; empty: at once.
struct StartProgram {
  std::string command;
  std::string ready = {};
  uint64_t ready_timeout_ms = 60'000;
};

struct TemplateManifest {
  std::string name;
  TemplateKind kind = TemplateKind::kRoot;
  std::string description;
  std::vector<std::string> aliases;  // other names of it
  ImageSource image;
  std::vector<NpmPackage> npm;      // beside the source's own packages
  std::optional<GoProgram> go;      // the same; without a source it is all there is
  std::vector<std::string> remove;  // globs of what the image does without, absolute
  std::string files;                // a folder beneath the template's, copied over the image
  std::vector<std::string> setup;   // commands, run once with the build network
  std::vector<LanguageRun> runs;    // one for each language; the first is the usual one
  std::optional<ContextRuntime> context;
  TemplateDefaults defaults;
  std::optional<StartProgram> start;
  std::vector<std::string> network_allow;    // empty: deny everything
  std::string upstream_proxy;                // name:port of a proxy that all goes through
  std::string upstream_credentials;          // the secret that it is shown
  std::vector<std::string> outputs_collect;  // globs, absolute
  OutputMode outputs_mode = OutputMode::kText;
  uint32_t pool_warm = 0;   // kept ready at all times
  uint32_t pool_max = 128;  // and as many when much is asked for
  bool pool_singleton = false;
  // Which sections are there, also if they say nothing.
  bool has_defaults = false;
  bool has_network = false;
  bool has_outputs = false;
};

// [a-z0-9][a-z0-9-]{0,62}
bool is_template_name(std::string_view name);

// `file` is for messages only.
Result<TemplateManifest> parse_template_manifest(std::string_view text, const std::string& file);

}  // namespace atl::store
