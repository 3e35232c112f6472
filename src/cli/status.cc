// `atoll status` and `atoll key`: what the directories and the server say about the Atoll of this
// host.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include <boost/json/serialize.hpp>

#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/host_commands.h"
#include "cli/server.h"
#include "cli/state_directory.h"
#include "linux/heartbeat.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

// How long a process may take to answer. All are asked at the same time.
constexpr std::chrono::milliseconds kAnswerTime{5'000};
constexpr std::chrono::milliseconds kLookPause{20};

struct Process {
  const char* name;
  std::optional<linux::LockHolder> holder;  // nothing: not running
  linux::HeartbeatWatch heartbeat;

  // One of an earlier release has no heartbeat and is not blamed for it.
  bool answers() const { return heartbeat.silence() < kAnswerTime; }
};

struct HostStatus {
  std::vector<Process> processes;
  std::string url;
  std::string not_ready;  // empty: ready
};

void ask_all(std::vector<Process>& processes) {
  auto is_open = [](const Process& one) {
    const linux::HeartbeatWatch& heartbeat = one.heartbeat;
    bool settled = heartbeat.has_answered() || heartbeat.absence().count() > 0;
    return one.holder && !settled && one.answers();
  };
  for (Process& one : processes) one.heartbeat.look(kLookPause);
  while (std::any_of(processes.begin(), processes.end(), is_open)) {
    std::this_thread::sleep_for(kLookPause);
    for (Process& one : processes) one.heartbeat.look(kLookPause);
  }
}

Result<HostStatus> look(const Places& places) {
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  Host host(places, "", daemon);
  ATOLL_TRY(std::optional<linux::LockHolder> supervisor, host.supervisor());
  ATOLL_TRY(std::optional<linux::LockHolder> warden, host.warden());
  ATOLL_TRY(std::optional<linux::LockHolder> builder, host.builder());
  ATOLL_TRY(std::optional<linux::LockHolder> egress, host.egress());
  ATOLL_TRY(std::optional<linux::LockHolder> atolld, host.daemon());
  HostStatus status;
  auto add = [&status](const char* name, std::optional<linux::LockHolder> holder,
                       const std::string& directory) {
    status.processes.push_back({name, std::move(holder), {directory, name}});
  };
  add(kSupervisorName, std::move(supervisor), places.run);
  add("atoll-warden", std::move(warden), places.run);
  add("atoll-builder", std::move(builder), places.run);
  add("atoll-egress", std::move(egress), egress_run(places));
  add("atolld", std::move(atolld), places.daemon_run());
  ask_all(status.processes);
  auto address = read_address(places);
  if (!address) {
    status.not_ready = address.error().message();
    return status;
  }
  ListenAddress reachable = address->reachable();
  status.url = "http://" + reachable.string();
  auto ready = check_ready(reachable.host, reachable.port);
  if (!ready) status.not_ready = ready.error().message();
  // What is looked after by nobody is not well, however ready it is.
  for (const Process& one : status.processes) {
    if (one.holder && one.answers()) continue;
    if (!status.not_ready.empty()) status.not_ready += "; ";
    status.not_ready += std::string(one.name) + (one.holder ? " does not answer" : " does not run");
  }
  return status;
}

void print_json(const HostStatus& status, const Places& places) {
  json::object processes;
  for (const Process& process : status.processes)
    processes[process.name] =
        process.holder ? json::value{{"pid", process.holder->pid}, {"answers", process.answers()}}
                       : json::value(nullptr);
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
  for (const Process& process : status.processes) {
    std::string state = process.holder ? std::to_string(process.holder->pid) : "not running";
    if (process.holder && !process.answers()) state += " (does not answer)";
    printf("  %-14s %s\n", process.name, state.c_str());
  }
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
