// `atoll status` and `atoll key`: what the directories and the server say about the Atoll of this
// host.
#include <stdio.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>

#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/host_commands.h"
#include "cli/server.h"
#include "cli/state_directory.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

struct Process {
  const char* name;
  pid_t pid;  // 0: not running
};

struct HostStatus {
  std::vector<Process> processes;
  std::string url;
  std::string not_ready;  // empty: ready
};

Result<HostStatus> look(const Places& places) {
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  Host host(places, "", daemon);
  ATOLL_TRY(std::optional<linux::LockHolder> supervisor, host.supervisor());
  ATOLL_TRY(std::optional<linux::LockHolder> warden, host.warden());
  ATOLL_TRY(std::optional<linux::LockHolder> builder, host.builder());
  ATOLL_TRY(std::optional<linux::LockHolder> egress, host.egress());
  ATOLL_TRY(std::optional<linux::LockHolder> atolld, host.daemon());
  HostStatus status;
  status.processes = {{"supervisor", supervisor ? supervisor->pid : 0},
                      {"atoll-warden", warden ? warden->pid : 0},
                      {"atoll-builder", builder ? builder->pid : 0},
                      {"atoll-egress", egress ? egress->pid : 0},
                      {"atolld", atolld ? atolld->pid : 0}};
  auto address = read_address(places);
  if (!address) {
    status.not_ready = address.error().message();
    return status;
  }
  ListenAddress reachable = address->reachable();
  status.url = "http://" + reachable.string();
  auto ready = check_ready(reachable.host, reachable.port);
  if (!ready) status.not_ready = ready.error().message();
  return status;
}

void print_json(const HostStatus& status, const Places& places) {
  json::object processes;
  for (const Process& process : status.processes)
    processes[process.name] =
        process.pid == 0 ? json::value(nullptr) : json::value{{"pid", process.pid}};
  json::object answer = {{"ready", status.not_ready.empty()},
                         {"url", status.url},
                         {"state_dir", places.state},
                         {"processes", std::move(processes)}};
  if (!status.not_ready.empty()) answer["reason"] = status.not_ready;
  printf("%s\n", json::serialize(answer).c_str());
}

void print_text(const HostStatus& status, const Places& places) {
  if (status.not_ready.empty())
    printf("ready at %s\n", status.url.c_str());
  else
    printf("not ready: %s\n", escape_line(status.not_ready).c_str());
  printf("  %-14s %s\n", "state", places.state.c_str());
  for (const Process& process : status.processes)
    printf("  %-14s %s\n", process.name,
           process.pid == 0 ? "not running" : std::to_string(process.pid).c_str());
}

}  // namespace

Result<int> run_command(const CommandLine& line, const StatusCommand&) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll status must run as root");
  ATOLL_TRY(HostStatus status, look(line.places));
  if (line.format == Format::kJson)
    print_json(status, line.places);
  else
    print_text(status, line.places);
  return status.not_ready.empty() ? 0 : kExitNotRunning;
}

Result<int> run_command(const CommandLine& line, const ShowKeyCommand&) {
  ATOLL_TRY(std::string key, read_local_key(line.places));
  if (line.format == Format::kJson)
    printf("%s\n", json::serialize(json::object{{"key", key}}).c_str());
  else
    printf("%s\n", key.c_str());
  return 0;
}

}  // namespace atl::cli
