#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <unistd.h>

#include <iterator>

#include <boost/json/serialize.hpp>

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
  if (!ready) return finding;
  finding.state = FindingState::kOk;
  finding.remedy = "";
  return finding;
}

// The newest that a release of Debian has.
constexpr const char* kRunscAge = "Debian 13's runsc, of July 2024";

// Installed on this host, or built by the server that runs here.
bool has_image(const CommandLine& line, const std::string& name) {
  std::string installed = line.places.templates() + "/" + name + "/image";
  if (access(installed.c_str(), F_OK) == 0) return true;
  auto api = connect(line);
  if (!api) return false;
  auto shown = api->call({.target = "/v1/templates/" + name});
  const boost::json::value* state = shown ? shown->if_contains("state") : nullptr;
  return state != nullptr && *state == "built";
}

// Both run in a jail, by programs of that image; the host itself needs none.
Finding probe_monitor(const CommandLine& line, std::string_view wall, const char* found) {
  std::string name(wall);
  bool there = has_image(line, name);
  return {.name = name,
          .kind = FindingClass::kExtra,
          .state = there ? FindingState::kOk : FindingState::kMissing,
          .found = there ? found : "the image that runs it is not built",
          .remedy = there ? "" : "atoll template build " + name};
}

void append(Findings& all, Findings more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

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
  all.push_back(probe_monitor(line, kSentryFinding, kRunscAge));
  all.push_back(probe_monitor(line, kMachineFinding, "machines are emulated"));
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
