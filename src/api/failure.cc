#include "api/failure.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/log.h"

namespace atl::api {

namespace json = boost::json;

namespace {

struct Advice {
  std::string_view reason;
  int status;
  std::string_view remedy;
};

constexpr std::string_view kHostCannotEnforce =
    "this host cannot enforce the limit; `atoll doctor` says why and what to change";
constexpr int kHttpVersionRefused = 505;
constexpr std::string_view kHostLacksExtra =
    "leave it out of \"require\", or run on a host that has it; `atoll doctor` lists what is here";

// Every reason that the domain gives, with the status that overrides that of its code (0: none).
constexpr Advice kAdvice[] = {
    {"invalid_json", 400, "send one JSON object, UTF-8, at most 32 levels deep, no key twice"},
    {"unknown_field", 400, "remove the field or correct its name"},
    {"missing_field", 400, "add the field"},
    {"invalid_field", 400, "correct the value of the field"},
    {"invalid_id", 404, "use an id that the API gave out"},
    {"template_not_found", 404,
     "list templates with `atoll template ls`; build one with `atoll template build`"},
    {"template_building", 503,
     "try again in a minute, or follow GET /v1/templates/{name}/build; `atoll template build` "
     "builds ahead of time"},
    {"template_is_toolbox", 400, "start from another template; `atoll template ls` lists them"},
    {"template_is_monitor", 400, "start from another template, with its name as \"isolation\""},
    {"template_busy", 409, "wait for its build to end: GET /v1/templates/{name}/build"},
    {"invalid_template", 400, "correct template.toml; `atoll template init` writes an example"},
    {"start_failed", 400,
     "correct [start] of the template; docs/templates.md says when a sandbox is ready"},
    {"too_many_tags", 429, "remove tags that nobody uses"},
    {"build_not_found", 404, "begin one with POST /v1/templates"},
    {"build_refused", 400, "correct the template; the log of the build says more"},
    {"build_failed", 503, "look at the log of the build and at that of atoll-builder"},
    {"builder_unavailable", 503, "try again; the supervisor restarts the builder"},
    {"too_many_builds", 429, "wait for builds to end"},
    {"too_many_uploads", 429, "wait for what is being sent to arrive"},
    {"pack_not_found", 404, "export it where it was built, or build it here from its folder"},
    {"image_missing", 503, "build the template again with `atoll template build`"},
    {"isolation_unavailable", 400,
     "build what runs it with `atoll template build gvisor` or `microvm`, or ask for a weaker "
     "wall; `atoll doctor` says what this host lacks"},
    {"not_behind_this_wall", 400,
     "leave it out, or ask for \"jail\"; docs/isolation.md says what each wall does"},
    {"persistence_unavailable", 400, "ask for \"persistent\", which keeps files, or leave it out"},
    {"cpu_unavailable", 400, kHostCannotEnforce},
    {"memory_unavailable", 400, kHostCannotEnforce},
    {"pids_unavailable", 400, kHostCannotEnforce},
    {"disk_unavailable", 400, kHostCannotEnforce},
    {"disk_rate_unavailable", 400, kHostCannotEnforce},
    {"open_files_unavailable", 400, kHostCannotEnforce},
    {"landlock_unavailable", 400, kHostLacksExtra},
    {"time_namespace_unavailable", 400, kHostLacksExtra},
    {"simple_quotas_unavailable", 400, kHostLacksExtra},
    {"hardware_virtualization_unavailable", 400,
     "ask for \"isolation\": \"microvm\" too; GET /v1/limits and `atoll doctor` say whether "
     "machines "
     "have it here, and why not"},
    {"sandbox_not_found", 404,
     "list sandboxes with GET /v1/sandboxes; it may have reached its ttl or idle ttl"},
    {"name_taken", 409,
     "choose another name, delete that sandbox, or send \"on_name_conflict\": \"use\""},
    {"name_conflict", 409, "ask for the template that the sandbox has, or choose another name"},
    {"stale_generation", 409,
     "the isolate was made anew since; read the sandbox again and start over what ran in it"},
    {"limit_fixed", 400, "leave it out, or create a new sandbox with it"},
    {"memory_in_use", 409, "end what uses the memory, or ask for more"},
    {"sandbox_away", 502, "create a sandbox, or connect to one that runs"},
    {"e2b_unsupported", 501, "docs/e2b.md lists what is supported"},
    {"snapshot_not_found", 404, "list snapshots with GET /v1/snapshots"},
    {"snapshot_has_children", 409, "delete its children first, or add ?children=adopt"},
    {"not_text", 409, "read both files and compare them yourself"},
    {"snapshot_in_use", 409, "try again when that is done"},
    {"snapshot_of_another_line", 409,
     "choose a snapshot of this sandbox, or create one with \"snapshot\""},
    {"snapshot_lost", 422, "its files are not on this host any more; delete it"},
    {"snapshot_not_sealed", 409, "seal it first with POST /v1/snapshots/{id}/seal"},
    {"snapshot_refused", 422, "export it again where it was made, and send the whole file"},
    {"snapshot_untrusted", 422,
     "have the operator add that host's receipt.pub to `trusted-keys`; see docs/operations.md"},
    {"snapshot_image_missing", 422, "build that version of the template here first"},
    {"snapshot_too_large", 413, "remove files that nobody needs, and keep it anew"},
    {"sealed_share_full", 429,
     "delete sealed snapshots that nobody needs, or have the operator give the tenant a larger "
     "share with `atoll tenant set --sealed-share`"},
    {"volume_not_found", 404, "list volumes with GET /v1/volumes"},
    {"volume_exists", 409, "use the volume that is there, or choose another name"},
    {"volume_in_use", 409,
     "delete the sandbox that has it, or mount it with \"mode\": \"ro\" in all of them"},
    {"volume_path_refused", 409,
     "choose a path without links, whose parts are directories or are not there yet"},
    {"too_many_volumes", 429, "delete volumes that nobody needs"},
    {"too_many_snapshots", 429, "delete snapshots that nobody needs"},
    {"sandbox_paused", 409,
     "resume it with POST …/resume, or create it with \"auto_resume\": true"},
    {"sandbox_not_running", 409, "look at its state and failure; create a new sandbox"},
    {"exec_not_found", 404, "list execs with GET /v1/sandboxes/{id}/execs"},
    {"context_not_found", 404, "list contexts with GET /v1/sandboxes/{id}/contexts"},
    {"context_deleted", 409, "create a new context"},
    {"run_not_found", 404, "use a number that POST …/runs gave"},
    {"too_many_contexts", 429, "delete a context that is not needed"},
    {"too_many_processes", 429, "end what runs in the sandbox, or give it a higher limit"},
    {"too_many_runs", 429, "wait for runs of this context to end"},
    {"language_unavailable", 409, "use a template whose image has that interpreter"},
    {"exec_not_running", 409, "it has ended; read its verdict"},
    {"port_not_listening", 502, "start a server on that port inside; list with GET …/ports"},
    {"bad_gateway", 502, "look at what the server inside says; it must speak HTTP/1.1"},
    {"stdin_closed", 409, "start the exec with \"stdin_open\": true, and write before its end"},
    {"stdin_gap", 409, "send from the offset that the last answer gave"},
    {"no_terminal", 409, "start the exec with \"pty\": {\"cols\": 80, \"rows\": 24}"},
    {"offset_beyond_end", 400, "read from an offset that an answer gave"},
    {"attached", 409, "attach with ?takeover=true, or read …/output, which any number may"},
    {"web_socket_required", 426, "send a WebSocket upgrade (RFC 6455)"},
    {"file_not_found", 404, "look at GET …/files/{directory}?list"},
    {"attribute_not_found", 404, "look at the file with ?stat"},
    {"exists", 409, "choose another name, or say that it may be replaced"},
    {"not_directory", 409, "a part of the path is a file; correct the path"},
    {"is_directory", 409, "use ?list or GET …/archive for a directory"},
    {"not_regular", 409, "only regular files have bytes to read; look at it with ?stat"},
    {"not_empty", 409, "add ?recursive=true"},
    {"too_many_links", 409, "the path leads in a circle of links, or through one of /proc"},
    {"other_file_system", 409, "copy the file by an exec; moves stay on one file system"},
    {"file_busy", 409, "try again when no program changes it"},
    {"permission_denied", 403, "add ?user=root, or change the mode of the file"},
    {"invalid_path", 400, "write an absolute path without empty, `.` and `..` parts"},
    {"name_too_long", 400, "names have at most 255 bytes and paths at most 4095"},
    {"invalid_file_request", 400, "correct the parameters of the request"},
    {"disk_limit", 507, "remove files, or create a sandbox with more \"disk_bytes\""},
    {"answer_too_large", 413, "ask for fewer entries at a time"},
    {"file_timeout", 503, "the sandbox is too busy to answer; try again"},
    {"file_operation_failed", 503, "try again; the sandbox may be out of memory or processes"},
    {"bad_answer", 502, "the inside of the sandbox broke its protocol; create a new sandbox"},
    {"too_many_operations", 429, "wait for file operations and connections to end"},
    {"range_not_satisfiable", 416, "ask for bytes within the length in Content-Range"},
    {"artifact_not_found", 404, "list them with GET …/artifacts; they are kept for 24 hours"},
    {"invalid_archive", 400, "send a tar archive, plain or compressed by gzip or zstd"},
    {"archive_entry_refused", 400, "remove or rename the entry; nothing was unpacked"},
    {"archive_too_large", 413, "send fewer, smaller or less compressed files at a time"},
    {"code_not_supported", 400, "use \"cmd\" or \"shell\", or a template with a language"},
    {"idempotency_key_reused", 422, "send a new key with a new request"},
    {"too_many_idempotency_keys", 429,
     "keys are forgotten after 24 hours; send fewer requests with one"},
    {"too_many_streams", 429, "close streams, attachments or waiting calls that nobody reads"},
    {"rate_limited", 429, "send fewer requests a second, and only keys that are in force"},
    {"too_many_execs", 429, "wait for running execs to end"},
    {"exceeds_host", 400, "ask for less; GET /v1/limits says what this host has"},
    {"tenant_share_full", 429,
     "delete sandboxes, volumes and snapshots that are not needed, or ask for smaller limits"},
    {"no_capacity", 503, "delete sandboxes, ask for smaller limits, or try again later"},
    {"host_full", 503, "delete sandboxes or try again later"},
    {"disk_full", 507, "free space on the host"},
    {"egress_unavailable", 503, "try again; the supervisor restarts atoll-egress"},
    {"invalid_network_rule", 400, "correct the rule; docs/egress.md shows the forms"},
    {"secret_not_found", 404,
     "list secrets with GET /v1/secrets; make one with PUT /v1/secrets/{name}"},
    {"too_many_secrets", 429, "delete secrets that nobody uses"},
    {"no_egress", 503, "run on a host whose driver has egress"},
    {"trust_failed", 409, "make /etc/ssl/certs/ca-certificates.crt a file of at most 4 MiB"},
    {"warden_unavailable", 503, "try again; the supervisor restarts the warden"},
    {"agent_unavailable", 503, "try again"},
    {"isolate_failed", 503, "try again; `atoll status` and the log of atoll-warden say more"},
    {"pool_unavailable", 503,
     "try again; the layer pool is mounted anew as soon as the disk beneath it allows, "
     "GET /readyz says more"},
    {"not_ready", 503, "try again in a moment; atolld is taking up its sandboxes"},
    {"database_replaced", 503, "put the file of the database back, or see docs/operations.md"},
    {"database_mismatch", 503, "see `Lost database` in docs/operations.md"},
    {"database_damaged", 503, "see `Lost database` in docs/operations.md"},
    {"malformed_request", 400, "send well-formed HTTP/1.1"},
    {"request_timeout", 408, "send the whole request without long pauses"},
    {"body_too_large", 413, "send a smaller body"},
    {"unauthenticated", 401,
     "send `Authorization: Bearer <key>`; `atoll key show-local` prints it"},
    {"operator_only", 403, "sign in with the key that `atoll key show-local` prints"},
    {"key_not_found", 404, "list the keys in force with GET /v1/keys"},
    {"tenant_not_found", 404, "list tenants with GET /v1/tenants; a key made for a name makes it"},
    {"local_key", 409, "remove the file local.key and restart atolld for a new local key"},
    {"too_many_keys", 409, "revoke keys that nobody uses"},
    {"not_found", 404, "check method and path against the documentation"},
    {"method_not_allowed", 405, "use one of the methods in the Allow header"},
    {"wrong_host", 421, "address the server as localhost or by a configured name"},
    {"cross_site", 403, "call the API from a program, not from a page of another site"},
    {"unsupported_media_type", 415, "send `Content-Type: application/json`"},
};

const Advice* advice_of(std::string_view reason) {
  for (const Advice& advice : kAdvice)
    if (advice.reason == reason) return &advice;
  return nullptr;
}

int status_of(Code code) {
  switch (code) {
    case Code::kInvalid:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kConflict:
      return 409;
    case Code::kDenied:
      return 403;
    case Code::kExhausted:
    case Code::kUnavailable:
    case Code::kTimeout:
      return 503;
    case Code::kUnsupported:
      return 400;
    case Code::kCorrupt:
    case Code::kCancelled:
    case Code::kSystem:
      return 500;
  }
  return 500;
}

struct Answer {
  int status;
  std::string_view code, message, field, remedy;
};

// Whose fault it is: not that of a request that asked for a limit which this host cannot have.
std::string_view cause_of(const Answer& answer) {
  if (answer.remedy == kHostCannotEnforce) return "platform";
  return answer.status < 500 || answer.status == kHttpVersionRefused ? "request" : "platform";
}

http::Response to_response(const Answer& answer, std::string_view request_id) {
  json::object error;
  error["code"] = answer.code;
  error["message"] = answer.message;
  if (!answer.field.empty()) error["field"] = answer.field;
  error["cause"] = cause_of(answer);
  error["remedy"] = answer.remedy;
  error["request_id"] = request_id;
  http::Response response;
  response.status = answer.status;
  response.headers.add("Content-Type", "application/json");
  response.headers.add("X-Request-Id", std::string(request_id));
  if (answer.status == 503 || answer.status == 429) response.headers.add("Retry-After", "1");
  if (answer.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  json::object body;
  body["error"] = std::move(error);
  response.body = json::serialize(body) + "\n";
  return response;
}

}  // namespace

int failure_status(const Error& error) {
  const Advice* advice = advice_of(error.reason());
  return advice ? advice->status : status_of(error.code());
}

std::string_view failure_remedy(const Error& error) {
  const Advice* advice = advice_of(error.reason());
  return advice ? advice->remedy : std::string_view();
}

http::Response failure_response(const Error& error, std::string_view request_id) {
  const Advice* advice = advice_of(error.reason());
  int status = failure_status(error);
  if (status >= 500) log_error("request failed", {{"request", request_id}, error});
  bool internal = status == 500;
  std::string_view code = error.reason().empty() ? code_name(error.code()) : error.reason();
  return to_response(
      {status, internal ? "internal" : code,
       internal ? "the platform failed; the log has the request id" : error.message(),
       error.field(), advice ? advice->remedy : "try again later"},
      request_id);
}

http::Response refusal_response(int status, std::string_view code, std::string_view message,
                                std::string_view request_id) {
  const Advice* advice = advice_of(code);
  return to_response({status, code, message, "", advice ? advice->remedy : "correct the request"},
                     request_id);
}

}  // namespace atl::api
