#include "sandbox/waiting_program.h"

#include <algorithm>

#include "base/bytes.h"
#include "sandbox/environment.h"
#include "sandbox/runtimes.h"

namespace atl::sandbox {

namespace {

constexpr std::string_view kBindNow = "LD_BIND_NOW=1";

// Read by the loader, the C library or the interpreter before any program runs.
bool is_read_at_start(std::string_view variable) {
  if (variable == kBindNow) return false;  // and nothing that a program could see depends on it
  constexpr std::string_view kPrefixes[] = {"PYTHON", "LD_",     "LC_",    "LANG", "TZ",
                                            "MALLOC", "GLIBC_",  "GCONV_", "OMP_", "OPENBLAS_",
                                            "MKL_",   "LOCPATH", "PATH="};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

std::vector<std::string> read_at_start(const std::vector<std::string>& environment) {
  std::vector<std::string> found;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(found), is_read_at_start);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool WaitingProgram::fits(const ExecRequest& request) const {
  if (request.context) {
    bool is_python = request.context->language == "python" && request.directory.empty();
    return is_python && request.open_files == open_files && request.user == "user" &&
           read_at_start(request.environment) == read_at_start(environment);
  }
  const auto& arguments = request.arguments;
  if (arguments.size() != 3 || arguments[0] != "python3" || arguments[1] != "-c") return false;
  if (request.user != "user" || !request.directory.empty() || request.terminal) return false;
  if (request.open_files != 0 && request.open_files != open_files) return false;
  if (request.input.size() > agent::kMaxInputBytes) return false;
  return read_at_start(request.environment) == read_at_start(environment);
}

std::optional<agent::Start> waiting_start(const store::TemplateManifest& manifest) {
  if (!manifest.context || manifest.context->language != "python") return std::nullopt;
  agent::Start start{
      .arguments = {"python3", "-c", std::string(python_start()), std::string(python_runtime())},
      .environment =
          compose_environment(manifest.defaults.cpu_millis, {manifest.defaults.environment}),
      .directory = {}};
  std::string preload = "ATOLL_PRELOAD=";
  for (const std::string& module : manifest.context->preload) preload += module + " ";
  start.environment.push_back(std::move(preload));
  // What it will call at its end is looked up at its start.
  start.environment.push_back(std::string(kBindNow));
  start.open_files = manifest.defaults.open_files;
  start.input_mode = agent::InputMode::kOpen;
  start.control = agent::ControlMode::kWaits;
  return start;
}

std::string beginning_message(const ExecRequest& request) {
  std::string fields = request.arguments[2];
  fields += '\0';
  for (const std::string& variable : request.environment) (fields += variable) += '\0';
  std::string message;
  ByteWriter writer(message);
  writer.text(fields);
  return message;
}

}  // namespace atl::sandbox
