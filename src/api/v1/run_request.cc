#include "api/v1/run_request.h"

#include <algorithm>
#include <span>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "api/base64.h"
#include "api/json_reader.h"
#include "api/router.h"
#include "api/v1/execs.h"
#include "api/v1/file_request.h"
#include "api/v1/sandbox_request.h"
#include "store/language_run.h"

namespace atl::api::v1 {

namespace json = boost::json;
using store::LanguageRun;

namespace {

constexpr size_t kMaxFiles = 64;
constexpr size_t kMaxLanguageBytes = 32;
// How long the sandbox may outlive its program if this process dies meanwhile.
constexpr uint64_t kTtlGraceMs = 60'000;

// Fields that are the exec's; those that are nobody's are the sandbox's, which refuses what it does
// not know.
constexpr std::string_view kExecFields[] = {"cmd",        "shell",          "stdin", "stdin_base64",
                                            "pty",        "user",           "cwd",   "timeout_ms",
                                            "stdin_open", "on_output_limit"};
constexpr std::string_view kProgramFields[] = {"code", "language", "entry", "args", "compile"};

// What is to be run when it is not a command.
struct Program {
  std::optional<std::string> code, language, entry;
  std::vector<std::string> arguments;
  std::optional<json::object> compile;  // as the body of an exec, without its command
  sandbox::ChangeSandbox compile_limits;

  // The first field that only a program has, if any.
  std::string field = {};
};

Error invalid(std::string_view field, std::string message,
              std::string_view reason = "invalid_field") {
  return Error(Code::kInvalid, std::move(message)).with_reason(reason).with_field(field);
}

// All of a request that the sandbox does not have.
std::vector<std::string> own_fields() {
  std::vector<std::string> names(std::begin(kExecFields), std::end(kExecFields));
  names.insert(names.end(), std::begin(kProgramFields), std::end(kProgramFields));
  names.emplace_back("files");
  return names;
}

json::object move_fields(json::object& from, std::span<const std::string_view> names) {
  json::object taken;
  for (std::string_view name : names) {
    json::value* value = from.if_contains(name);
    if (value && !value->is_null()) taken[name] = *value;
    from.erase(name);
  }
  return taken;
}

Result<RunFile> parse_file(const json::value& value, size_t number) {
  std::string prefix = fmt::format("files[{}].", number);
  const json::object* object = value.if_object();
  if (!object) return invalid("files", fmt::format("files[{}] must be an object", number));
  ObjectReader reader(*object, prefix);
  std::string path = reader.text("path", agent::kMaxPathBytes);
  auto text = reader.optional_text("text", kMaxBodyBytes);
  auto base64 = reader.optional_text("base64", kMaxBodyBytes);
  if (text.has_value() == base64.has_value())
    reader.refuse("text", "or base64 is required, and not both");
  std::optional<std::string> bytes = base64 ? from_base64(*base64) : text;
  if (!bytes) reader.refuse("base64", "is not base 64 (RFC 4648, with padding)");
  ATOLL_TRY_VOID(reader.finish());
  auto clean = clean_path(path);
  if (!clean) return std::move(clean).error().with_field(prefix + "path");
  return RunFile{std::move(*clean), std::move(*bytes)};
}

Result<std::vector<RunFile>> take_files(json::object& object) {
  std::vector<RunFile> files;
  json::value* value = object.if_contains("files");
  if (!value || value->is_null()) {
    object.erase("files");
    return files;
  }
  const json::array* items = value->if_array();
  if (!items || items->size() > kMaxFiles)
    return invalid("files", "files must be an array of at most 64");
  for (const json::value& item : *items) {
    ATOLL_TRY(RunFile file, parse_file(item, files.size()));
    files.push_back(std::move(file));
  }
  object.erase("files");
  return files;
}

// Those of the sandbox while it compiles, and those of the exec that does.
Result<void> parse_compile_limits(const json::object& object, Program& program) {
  ObjectReader reader(object, "compile.limits.");
  sandbox::ChangeSandbox& limits = program.compile_limits;
  limits.cpu_millis =
      reader.optional_thousandths("cpu", isolate::kMinCpuMillis, isolate::kMaxCpuMillis);
  limits.memory_bytes =
      reader.optional_integer("memory_bytes", isolate::kMinMemoryBytes, isolate::kMaxMemoryBytes);
  limits.pids = reader.optional_small("pids", isolate::kMinPids, isolate::kMaxPids);
  json::object exec;
  if (auto value = reader.optional_small("cpu_time_ms", 1, sandbox::kMaxCpuTimeMs))
    exec["cpu_time_ms"] = *value;
  if (auto value = reader.optional_integer("output_bytes", 0, sandbox::kMaxOutputLimitBytes))
    exec["output_bytes"] = *value;
  if (auto value =
          reader.optional_small("open_files", isolate::kMinOpenFiles, isolate::kMaxOpenFiles))
    exec["open_files"] = *value;
  (*program.compile)["limits"] = std::move(exec);
  return reader.finish();
}

Result<void> parse_compile(const json::object& object, Program& program) {
  ObjectReader reader(object, "compile.");
  program.compile.emplace();
  if (auto timeout = reader.optional_small("timeout_ms", 1, sandbox::kMaxTimeoutMs))
    (*program.compile)["timeout_ms"] = *timeout;
  if (const json::object* limits = reader.optional_object("limits")) {
    ATOLL_TRY_VOID(parse_compile_limits(*limits, program));
  }
  return reader.finish();
}

Result<Program> parse_program(const json::object& fields) {
  ObjectReader reader(fields);
  Program program;
  program.code = reader.optional_text("code", kMaxBodyBytes);
  program.language = reader.optional_text("language", kMaxLanguageBytes);
  program.entry = reader.optional_text("entry", agent::kMaxPathBytes);
  auto arguments = reader.optional_texts("args", agent::kMaxArguments, agent::kMaxTextBytes - 1);
  program.arguments = arguments.value_or(std::vector<std::string>());
  const json::object* compile = reader.optional_object("compile");
  ATOLL_TRY_VOID(reader.finish());
  if (compile) ATOLL_TRY_VOID(parse_compile(*compile, program));
  if (program.code && program.entry) return invalid("entry", "entry and code exclude each other");
  if (program.entry) {
    auto clean = clean_path(*program.entry);
    if (!clean) return std::move(clean).error().with_field("entry");
    program.entry = std::move(*clean);
  }
  if (!fields.empty()) program.field = fields.begin()->key();
  return program;
}

// The file that is run: the one that is named, the only one, or the one that is called as the
// language calls its code.
Result<std::string> find_entry(const Program& program, const std::vector<RunFile>& files,
                               const std::vector<LanguageRun>& runs) {
  if (program.entry) {
    for (const RunFile& file : files)
      if (file.path == *program.entry) return file.path;
    return invalid("entry", "entry must be the path of one of the files");
  }
  if (files.size() == 1) return files.front().path;
  for (const LanguageRun& run : runs)
    for (const RunFile& file : files)
      if (file.path.ends_with("/" + run.file)) return file.path;
  return invalid("entry", "entry must say which of the files is run", "missing_field");
}

Result<const LanguageRun*> find_language(const Program& program, std::string_view entry,
                                         const std::vector<LanguageRun>& runs) {
  if (runs.empty())
    return invalid(program.code ? "code" : "files", "the template has no language",
                   "code_not_supported");
  if (!program.language) {
    auto same = [&](const LanguageRun& run) {
      return store::extension_of(run.file) == store::extension_of(entry);
    };
    auto found = std::find_if(runs.begin(), runs.end(), same);
    return found == runs.end() ? &runs.front() : &*found;
  }
  std::string known;
  for (const LanguageRun& run : runs) {
    if (run.language == *program.language) return &run;
    known += (known.empty() ? "" : ", ") + run.language;
  }
  return invalid("language", "the template has no such language; it has " + known,
                 "code_not_supported");
}

json::array words_json(const std::vector<std::string>& words) {
  return json::array(words.begin(), words.end());
}

// From a file: of the caller, or one that is made of the code.
void plan_file(const Program& program, const LanguageRun& language, std::string entry,
               RunRequest& run) {
  store::RunPaths paths{.entry = std::move(entry), .others = {}};
  for (const RunFile& file : run.files) paths.others.push_back(file.path);
  // Where the user may write, whoever it is.
  std::string folder = run.user == "user" ? "/home/user/" : "/tmp/";
  if (program.code) paths.entry = folder + language.file;
  if (program.code) run.files.push_back({paths.entry, *program.code});
  run.exec["cmd"] = words_json(store::words_with_paths(language.command, paths));
  if (!run.exec.contains("cwd"))
    run.exec["cwd"] = paths.entry.substr(0, std::max<size_t>(1, paths.entry.rfind('/')));
  if (language.compile.empty()) return;
  run.compile = program.compile.value_or(json::object());
  (*run.compile)["cmd"] = words_json(store::words_with_paths(language.compile, paths));
  (*run.compile)["cwd"] = run.exec["cwd"];
  (*run.compile)["user"] = run.user;
}

// The sandbox is made with the limits of compiling and gets its own before the program runs.
void plan_limits(const Program& program, const store::TemplateDefaults& defaults, RunRequest& run) {
  sandbox::ChangeSandbox own;
  sandbox::CreateSandbox& create = run.create;
  const sandbox::ChangeSandbox& asked = program.compile_limits;
  if (asked.cpu_millis) own.cpu_millis = create.cpu_millis.value_or(defaults.cpu_millis);
  if (asked.memory_bytes) own.memory_bytes = create.memory_bytes.value_or(defaults.memory_bytes);
  if (asked.pids) own.pids = create.pids.value_or(defaults.pids);
  if (!own.cpu_millis && !own.memory_bytes && !own.pids) return;
  if (asked.cpu_millis) create.cpu_millis = asked.cpu_millis;
  if (asked.memory_bytes) create.memory_bytes = asked.memory_bytes;
  if (asked.pids) create.pids = asked.pids;
  run.after_compile = own;
}

Result<void> plan_program(const Program& program, const store::TemplateManifest& manifest,
                          RunRequest& run) {
  std::string entry;
  if (!program.code) {
    ATOLL_TRY(entry, find_entry(program, run.files, manifest.runs));
  }
  ATOLL_TRY(const LanguageRun* language, find_language(program, entry, manifest.runs));
  bool fits = program.code && program.code->size() < agent::kMaxTextBytes;
  if (fits && !language->inline_command.empty()) {
    run.exec["cmd"] = words_json(store::words_with_code(language->inline_command, *program.code));
  } else {
    plan_file(program, *language, std::move(entry), run);
  }
  json::array& command = run.exec["cmd"].get_array();
  for (const std::string& argument : program.arguments) command.emplace_back(argument);
  if (program.compile && !run.compile)
    return invalid("compile", "nothing is compiled in " + language->language);
  plan_limits(program, manifest.defaults, run);
  return {};
}

uint64_t timeout_of(const json::object& exec) {
  const json::value* timeout = exec.if_contains("timeout_ms");
  bool is_given = timeout && timeout->is_int64() && timeout->get_int64() > 0;
  if (timeout && timeout->is_uint64()) return timeout->get_uint64();
  return is_given ? static_cast<uint64_t>(timeout->get_int64())
                  : uint64_t{sandbox::kDefaultTimeoutMs};
}

}  // namespace

Result<RunRequest> parse_run(std::string_view body, sandbox::Templates& templates,
                             store::TenantId tenant) {
  ATOLL_TRY(json::object object, parse_object(body));
  RunRequest run;
  ATOLL_TRY(run.files, take_files(object));
  run.exec = move_fields(object, kExecFields);
  ATOLL_TRY(Program program, parse_program(move_fields(object, kProgramFields)));
  if (const json::value* user = run.exec.if_contains("user"))
    if (user->is_string()) run.user = user->get_string();
  bool has_command = run.exec.contains("cmd") || run.exec.contains("shell");
  if (has_command && !program.field.empty())
    return invalid(program.field, program.field + " excludes cmd and shell");
  bool has_program = program.code || program.entry || !run.files.empty();
  if (!has_command && !has_program)
    return invalid("cmd", "cmd, shell, code or files is required", "missing_field");
  ATOLL_TRY(run.create, parse_create_of_run(json::serialize(object), own_fields()));
  ATOLL_TRY(auto found, templates.find_template(tenant, run.create.template_name));
  // One that is not there is refused by the create.
  if (!has_command && found) ATOLL_TRY_VOID(plan_program(program, found->manifest, run));
  uint64_t timeout_ms = timeout_of(run.exec) + (run.compile ? timeout_of(*run.compile) : 0);
  if (!run.create.ttl_ms)
    run.create.ttl_ms = std::min<uint64_t>(timeout_ms + kTtlGraceMs, sandbox::kMaxTtlMs);
  // Before a sandbox is made for it. Its limits, the only thing that is not known yet, are no field
  // of the exec.
  if (has_command || found)
    ATOLL_TRY_VOID(parse_exec(json::serialize(run.exec), sandbox::Limits{}, ExecDefaults{}));
  return run;
}

}  // namespace atl::api::v1
