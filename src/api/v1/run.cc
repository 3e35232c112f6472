#include "api/v1/run.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "api/base64.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/artifacts.h"
#include "api/v1/exec_json.h"
#include "api/v1/execs.h"
#include "api/v1/file_json.h"
#include "api/v1/file_request.h"
#include "api/v1/sandbox_request.h"
#include "api/v1/sandboxes.h"
#include "base/file.h"
#include "base/log.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kMaxFiles = 64;
constexpr uint64_t kMaxInlineArtifactBytes = 64 * 1024;
constexpr uint64_t kMaxInlineArtifactsBytes = 1024 * 1024;  // together
// How long the sandbox may outlive its program if this process dies meanwhile.
constexpr uint64_t kTtlGraceMs = 60'000;

// Fields that are the exec's; all others are the sandbox's, which refuses what it does not know.
constexpr std::string_view kExecFields[] = {"cmd",        "shell",          "stdin", "stdin_base64",
                                            "pty",        "user",           "cwd",   "timeout_ms",
                                            "stdin_open", "on_output_limit"};

struct RunFile {
  std::string path;
  std::string bytes;
};

struct Run {
  sandbox::CreateSandbox create;
  json::object exec;
  std::string user = "user";
  std::vector<RunFile> files;
};

// How a piece of code in a template's language becomes a command.
Result<json::array> command_of(std::string_view language, std::string_view code) {
  struct {
    std::string_view language, program, option;
  } constexpr kLanguages[] = {
      {"python", "python3", "-c"}, {"javascript", "node", "-e"}, {"node", "node", "-e"},
      {"bash", "bash", "-c"},      {"sh", "/bin/sh", "-c"},
  };
  for (const auto& known : kLanguages)
    if (known.language == language) return json::array{known.program, known.option, code};
  return Error(Code::kInvalid, language.empty() ? "the template has no language"
                                                : "code in " + std::string(language) +
                                                      " needs a command of its own")
      .with_reason("code_not_supported")
      .with_field("code");
}

Result<RunFile> parse_file(const json::value& value, size_t number) {
  std::string prefix = fmt::format("files[{}].", number);
  const json::object* object = value.if_object();
  if (!object)
    return Error(Code::kInvalid, fmt::format("files[{}] must be an object", number))
        .with_reason("invalid_field")
        .with_field("files");
  ObjectReader reader(*object, prefix);
  RunFile file;
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
    return Error(Code::kInvalid, "files must be an array of at most 64")
        .with_reason("invalid_field")
        .with_field("files");
  for (const json::value& item : *items) {
    ATOLL_TRY(RunFile file, parse_file(item, files.size()));
    files.push_back(std::move(file));
  }
  object.erase("files");
  return files;
}

Result<void> take_code(json::object& object, json::object& exec, Sandboxes& sandboxes,
                       store::TenantId tenant) {
  json::value* code = object.if_contains("code");
  if (!code || code->is_null()) {
    object.erase("code");
    return {};
  }
  const json::string* text = code->if_string();
  const json::value* name = object.if_contains("template");
  if (!text || exec.contains("cmd") || exec.contains("shell"))
    return Error(Code::kInvalid, "code must be a string, without cmd and shell")
        .with_reason("invalid_field")
        .with_field("code");
  std::string language = "python";  // without a template the create that follows is refused
  if (name && name->is_string()) {
    ATOLL_TRY(auto found, sandboxes.templates().find_template(tenant, name->get_string()));
    if (found) language = found->manifest.context ? found->manifest.context->language : "";
  }
  ATOLL_TRY(exec["cmd"], command_of(language, *text));
  object.erase("code");
  return {};
}

Result<Run> parse_run(std::string_view body, Sandboxes& sandboxes, store::TenantId tenant) {
  ATOLL_TRY(json::object object, parse_object(body));
  Run run;
  // A run deletes its sandbox: never one that was there before.
  if (object.contains("on_name_conflict"))
    return Error(Code::kInvalid, "on_name_conflict is not a field of a run")
        .with_reason("unknown_field")
        .with_field("on_name_conflict");
  ATOLL_TRY(run.files, take_files(object));
  for (std::string_view field : kExecFields) {
    json::value* value = object.if_contains(field);
    if (value && !value->is_null()) run.exec[field] = *value;
    object.erase(field);
  }
  ATOLL_TRY_VOID(take_code(object, run.exec, sandboxes, tenant));
  if (!run.exec.contains("cmd") && !run.exec.contains("shell"))
    return Error(Code::kInvalid, "cmd, shell or code is required")
        .with_reason("missing_field")
        .with_field("cmd");
  ATOLL_TRY(run.create, parse_create(json::serialize(object)));
  const json::value* timeout = run.exec.if_contains("timeout_ms");
  bool has_timeout = timeout && timeout->is_int64() && timeout->get_int64() > 0;
  uint64_t timeout_ms = has_timeout ? static_cast<uint64_t>(timeout->get_int64())
                                    : uint64_t{sandbox::kDefaultTimeoutMs};
  if (!run.create.ttl_ms)
    run.create.ttl_ms = std::min<uint64_t>(timeout_ms + kTtlGraceMs, sandbox::kMaxTtlMs);
  if (const json::value* user = run.exec.if_contains("user"))
    if (user->is_string()) run.user = user->get_string();
  return run;
}

// Removes the sandbox of a run that came to no answer, also when its client has gone.
class Doomed {
 public:
  Doomed(Sandboxes& sandboxes, std::shared_ptr<Sandbox> sandbox)
      : sandboxes_(sandboxes), sandbox_(std::move(sandbox)) {}
  ~Doomed() {
    if (!sandbox_) return;
    // detached: owned by the Sandboxes, whose sweep finishes what it begins
    boost::asio::co_spawn(sandboxes_.services().executor, remove(sandboxes_, sandbox_),
                          boost::asio::detached);
  }
  Doomed(const Doomed&) = delete;
  Doomed& operator=(const Doomed&) = delete;
  void dismiss() { sandbox_.reset(); }

 private:
  static Task<void> remove(Sandboxes& sandboxes, std::shared_ptr<Sandbox> sandbox) {
    auto removed = co_await sandboxes.remove(sandbox->row().tenant, sandbox->id());
    if (!removed) log_warning("left for the sweep", {removed.error()});
  }

  Sandboxes& sandboxes_;
  std::shared_ptr<Sandbox> sandbox_;
};

http::Task<Result<void>> write_files(std::shared_ptr<Sandbox> sandbox, Run& run) {
  sandbox::Files files(sandbox, run.user);
  for (RunFile& file : run.files) {
    sandbox::WriteFile request;
    request.path = file.path;
    ATOLL_CO_TRY(std::unique_ptr<sandbox::FileWriter> writer, co_await files.write(request));
    ATOLL_CO_TRY_VOID(co_await writer->write(file.bytes));
    ATOLL_CO_TRY_VOID(co_await writer->finish());
  }
  co_return Result<void>();
}

// False when the client went away first.
http::Task<bool> wait_ended(Call& call, Exec& exec) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return false;
  SteadyTime never = SteadyTime::max();
  co_return co_await exec.wait_ended(never);
}

std::string percent_encoded(std::string_view name) {
  std::string text;
  for (unsigned char c : name) {
    bool plain = isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
    text += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return text;
}

// What was kept when the sandbox was removed, small ones with their bytes.
Result<json::array> artifacts_json(SandboxId id, store::TenantId tenant,
                                   sandbox::Services& services) {
  int64_t now_ms = to_milliseconds(services.clock.wall_now());
  ATOLL_TRY(auto kept, services.artifacts.list(tenant, id, now_ms));
  json::array items;
  uint64_t inlined = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    json::object item = artifact_json(kept[i]);
    bool fits = kept[i].size <= kMaxInlineArtifactBytes &&
                inlined + kept[i].size <= kMaxInlineArtifactsBytes;
    if (fits) {
      ATOLL_TRY(Fd file, services.artifacts.open_bytes(id, i));
      ATOLL_TRY(std::string bytes, read_all(file.get(), kMaxInlineArtifactBytes));
      inlined += bytes.size();
      item["base64"] = to_base64(bytes);
    } else {
      item["url"] = "/v1/sandboxes/" + id.string() + "/artifacts/" + percent_encoded(kept[i].name);
    }
    items.push_back(std::move(item));
  }
  return items;
}

double ms_since(SteadyTime start) {
  auto elapsed = std::chrono::steady_clock::now() - start;
  auto us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  return to_ms(static_cast<uint64_t>(us));
}

http::Task<Reply> run_once(Call& call, Sandboxes& sandboxes) {
  SteadyTime begin = std::chrono::steady_clock::now();
  ATOLL_CO_TRY(Run run, parse_run(call.body, sandboxes, call.tenant));
  ATOLL_CO_TRY(sandbox::Created created, co_await sandboxes.create(call.tenant, run.create));
  std::shared_ptr<Sandbox> sandbox = created.sandbox;
  Doomed doomed(sandboxes, sandbox);
  double create_ms = ms_since(begin);
  ATOLL_CO_TRY(ExecCall parsed, parse_exec(json::serialize(run.exec), *sandbox));
  SteadyTime phase = std::chrono::steady_clock::now();
  ATOLL_CO_TRY_VOID(co_await write_files(sandbox, run));
  double files_ms = ms_since(phase);
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec,
               co_await sandbox->start_exec(std::move(parsed.request), parsed.description));
  bool ended = co_await wait_ended(call, *exec);
  if (!ended) co_return std::optional<http::Response>();
  ATOLL_CO_TRY(json::object object, exec_json(*exec));
  phase = std::chrono::steady_clock::now();
  doomed.dismiss();
  auto removed = co_await sandboxes.remove(call.tenant, sandbox->id());
  // What could not be removed yet counts until the sweep has done it.
  if (!removed) log_warning("left for the sweep", {removed.error()});
  object["sandbox_id"] = sandbox->id().view();
  ATOLL_CO_TRY(object["artifacts"],
               artifacts_json(sandbox->id(), call.tenant, sandboxes.services()));
  json::object& timings = object["timings"].is_object() ? object["timings"].get_object()
                                                        : object["timings"].emplace_object();
  timings["create_ms"] = create_ms;
  timings["files_ms"] = files_ms;
  timings["remove_ms"] = ms_since(phase);
  timings["total_ms"] = ms_since(begin);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_run_route(Router& router, Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return run_once(call, sandboxes); };
  router.add({.method = http::Method::kPost,
              .pattern = "/v1/run",
              .action = action,
              .effect = Route::Effect::kCreates});
}

}  // namespace atl::api::v1
