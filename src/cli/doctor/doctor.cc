#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <unistd.h>

#include <iterator>
#include <optional>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/doctor/cgroups.h"
#include "cli/doctor/file_systems.h"
#include "cli/doctor/kernel.h"
#include "cli/doctor/namespaces.h"
#include "cli/doctor/privileges.h"
#include "cli/doctor/programs.h"
#include "cli/doctor/report.h"
#include "cli/doctor/resources.h"
#include "cli/doctor/uid_range.h"
#include "cli/server.h"
#include "store/toml_section.h"

namespace atl::cli {
namespace {

// The one that was named, the one whose address is in the run directory, else the one where
// `atoll up` listens by default: a user may not be able to read the directory.
Result<Server> find_address(const CommandLine& line) {
  if (!line.server.url.empty()) return parse_url(line.server.url);
  auto written = read_address(line.places);
  if (!written && written.error().code() == Code::kUnavailable) return std::move(written).error();
  if (!written) written = ListenAddress::parse(kDefaultListen);
  if (!written) return std::move(written).error();
  ListenAddress address = written->reachable();
  return Server{.host = address.host, .port = address.port, .key = ""};
}

Finding probe_server(const CommandLine& line) {
  Finding finding = {.name = "server",
                     .kind = FindingClass::kAdvice,
                     .state = FindingState::kMissing,
                     .found = "",
                     .remedy = "atoll up --detach"};
  auto server = find_address(line);
  if (!server) {
    finding.found = "none runs";
    return finding;
  }
  std::string url = "http://" + ListenAddress{server->host, server->port}.string();
  auto ready = check_ready(server->host, server->port);
  finding.found = ready ? "ready at " + url : url + ": " + ready.error().message();
  if (!ready) finding.remedy = "atoll status; what does not answer is restarted by the supervisor";
  if (!ready) return finding;
  finding.state = FindingState::kOk;
  finding.remedy = "";
  return finding;
}

constexpr size_t kMaxManifestBytes = 256 * 1024;
// Older by years, for hosts that cannot build the other.
constexpr const char* kOldSentry = "gvisor-debian";

// What the template says of itself if it has an image: installed on this host, or built by the
// server that runs here.
std::optional<std::string> describe_image(const CommandLine& line, const std::string& name) {
  std::string installed = line.places.templates() + "/" + name;
  if (access((installed + "/image").c_str(), F_OK) == 0) {
    std::string description;
    auto text = read_file(installed + "/template.toml", kMaxManifestBytes);
    auto document = text ? store::TomlDocument::parse(*text, name)
                         : Result<store::TomlDocument>(std::move(text).error());
    if (document)
      store::TomlSection(*document, document->root(), "").text("description", description);
    return description;
  }
  auto api = connect(line);
  if (!api) return std::nullopt;
  auto shown = api->call({.target = "/v1/templates/" + name});
  const boost::json::value* state = shown ? shown->if_contains("state") : nullptr;
  if (state == nullptr || *state != "built") return std::nullopt;
  const boost::json::value* description = shown->if_contains("description");
  return description != nullptr && description->is_string() ? std::string(description->get_string())
                                                            : std::string();
}

// What the server that runs here has tried, "machines" or "sentries": to start one takes its time,
// and its image.
boost::json::object find_tried(const CommandLine& line, std::string_view which) {
  auto api = connect(line);
  if (!api) return {};
  auto limits = api->call({.target = "/v1/limits"});
  const boost::json::value* tried = limits ? limits->if_contains(which) : nullptr;
  const boost::json::object* found = tried != nullptr ? tried->if_object() : nullptr;
  return found != nullptr ? *found : boost::json::object();
}

std::string reason_of(const boost::json::object& tried) {
  const boost::json::value* reason = tried.if_contains("reason");
  return reason != nullptr && reason->is_string() ? reason->as_string().c_str() : "";
}

// It runs in a jail, by programs of that image; the host itself needs none.
Finding found_monitor(std::string_view wall, const std::optional<std::string>& found) {
  std::string name(wall);
  return {.name = name,
          .kind = FindingClass::kExtra,
          .state = found ? FindingState::kOk : FindingState::kMissing,
          .found = found.value_or("the image that runs it is not built"),
          .remedy = found ? "" : "atoll template build " + name};
}

Finding probe_sentry(const CommandLine& line) {
  auto found = describe_image(line, std::string(kSentryFinding));
  if (!found) {
    found = describe_image(line, kOldSentry);
    if (found) *found += "; newer: atoll template build " + std::string(kSentryFinding);
  }
  Finding finding = found_monitor(kSentryFinding, found);
  if (found) add_platform(finding, find_tried(line, "sentries"));
  return finding;
}

Finding probe_machine(const CommandLine& line) {
  auto found = describe_image(line, std::string(kMachineFinding));
  if (found) *found = machines_text(find_tried(line, "machines"));
  return found_monitor(kMachineFinding, found);
}

void append(Findings& all, Findings more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::string machines_text(const boost::json::object& machines) {
  const boost::json::value* kind = machines.if_contains("virtualization");
  if (kind != nullptr && *kind == "hardware") return "KVM has booted a machine, and runs them";
  if (kind == nullptr || *kind != "emulated")
    return "machines are emulated unless a server finds that KVM boots one";
  std::string why = reason_of(machines);
  return "machines are emulated" + (why.empty() ? "" : ": " + why);
}

void add_platform(Finding& finding, const boost::json::object& sentries) {
  const boost::json::value* platform = sentries.if_contains("platform");
  std::string why = reason_of(sentries);
  if (platform != nullptr && platform->is_string()) {
    finding.found += std::string("; by ") + platform->as_string().c_str();
    if (!why.empty()) finding.found += ", because " + why;
  } else if (!why.empty()) {
    finding.state = FindingState::kMissing;
    finding.found += "; does not run here: " + why;
    finding.remedy = "atoll restart --daemon tries it again; journalctl -k may say what refuses it";
  }
}

Findings examine_host(const CommandLine& line) {
  Findings all = probe_kernel();
  append(all, probe_privileges());
  append(all, probe_namespaces());
  append(all, probe_cgroups());
  append(all, probe_file_systems());
  append(all, probe_uid_range());
  append(all, probe_programs());
  append(all, probe_resources(line.places));
  // Last: the trials before want a process with a single thread.
  all.push_back(probe_server(line));
  all.push_back(probe_sentry(line));
  all.push_back(probe_machine(line));
  return all;
}

Result<int> run_command(const CommandLine& line, const DoctorCommand&) {
  Report report(examine_host(line));
  if (line.format == Format::kJson)
    printf("%s\n", boost::json::serialize(to_json(report)).c_str());
  else
    printf("%s", to_text(report).c_str());
  return report.jail_usable() ? 0 : 1;
}

}  // namespace atl::cli
