#include "cli/selftest/selftest.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <boost/json/serialize.hpp>

#include "agent/exec_filter.h"
#include "base/file.h"
#include "cli/host.h"
#include "cli/interrupt.h"
#include "cli/selftest/attempt.h"
#include "cli/selftest/filter_check.h"
#include "cli/selftest/host_oracle.h"
#include "cli/selftest/judgement.h"
#include "cli/selftest/report.h"
#include "cli/selftest/sandboxes.h"
#include "cli/selftest/victim_list.h"
#include "cli/template_commands.h"
#include "linux/bpf_interpreter.h"

namespace atl::cli::selftest {
namespace {

namespace json = boost::json;

constexpr size_t kMaxListBytes = 1 << 20;

Result<std::string> find_share() {
  ATOLL_TRY(std::string binaries, find_binaries());
  std::string share = binaries + "/../share/atoll/selftest";
  if (access((share + "/digest").c_str(), R_OK) == 0) return share;
  return Error(Code::kNotFound, "the selftest's image is not in " + share +
                                    "\n  remedy: make build, or make install");
}

Result<std::vector<Victim>> read_victims(const std::string& share,
                                         const std::vector<std::string>& only) {
  ATOLL_TRY(std::string text, read_file(share + "/victims.tsv", kMaxListBytes));
  ATOLL_TRY(std::vector<Victim> victims, parse_victims(text));
  std::erase_if(victims, [](const Victim& victim) { return victim.place == Place::kNone; });
  for (const std::string& name : only)
    if (std::none_of(victims.begin(), victims.end(),
                     [&](const Victim& victim) { return victim.name == name; }))
      return Error(Code::kInvalid, "there is no victim \"" + name + "\": atoll selftest --list");
  if (!only.empty())
    std::erase_if(victims, [&](const Victim& victim) {
      return std::find(only.begin(), only.end(), victim.name) == only.end();
    });
  return victims;
}

int print_list(const std::vector<Victim>& victims, Format format) {
  json::array rows;
  for (const Victim& victim : victims) {
    if (format == Format::kText)
      printf("%-6s  %-24s %s\n", victim.id.c_str(), victim.name.c_str(), victim.about.c_str());
    rows.push_back({{"name", victim.name}, {"id", victim.id}, {"about", victim.about}});
  }
  if (format == Format::kJson)
    printf("%s\n", json::serialize(json::object{{"victims", std::move(rows)}}).c_str());
  return 0;
}

bool is_installed(const Places& places, const std::string& share) {
  std::string installed = places.templates() + "/selftest";
  for (auto [built, kept] :
       {std::pair{"/digest", "/image"}, {"/template.toml", "/template.toml"}}) {
    auto wanted = read_file(share + built);
    auto found = read_file(installed + kept);
    if (!wanted || !found || *wanted != *found) return false;
  }
  return true;
}

Result<void> install(const Places& places, const std::string& share) {
  if (is_installed(places, share)) return {};
  umask(022);
  auto installed = install_template(places, share);
  if (!installed) return std::move(installed).error().with_context("add the template selftest");
  return {};
}

// The filter that this build's agent loads for every exec, asked without making a call.
void ask_filter(Report& report) {
  auto findings = check_filter([](const seccomp_data& call) {
    auto action = linux::run_filter_program(agent::exec_filter(), call);
    return action ? *action : uint32_t{SECCOMP_RET_ALLOW};  // what cannot be read is not a wall
  });
  for (const std::string& finding : findings) report.add_finding(Outcome::kBroke, finding);
  Victim filter;
  filter.name = "exec_filter";
  filter.id = "ESC-30";
  if (findings.empty()) report.add(filter, "-", {Outcome::kHeld, "every answer is right", ""});
}

// One run of the selftest, on one thread.
class Selftest {
 public:
  Selftest(Sandboxes& sandboxes, HostOracle& oracle, Report& report, std::string wall)
      : sandboxes_(sandboxes), oracle_(oracle), report_(report), wall_(std::move(wall)) {}

  Result<void> run(const std::vector<Victim>& victims);

 private:
  Result<Attempt> try_victim(const Victim& victim, const std::string& user);
  Result<Judgement> judge_behind(const Victim& victim, const json::object& exec) const;
  Result<void> look_at_host(Attempt& attempt);
  Result<void> report_meanwhile();

  Sandboxes& sandboxes_;
  HostOracle& oracle_;
  Report& report_;
  std::string wall_;
  std::string beat_;
};

// Where a victim's own word proves nothing the host alone is asked, and where it ends in another
// way than in a jail, that way is the right one.
Result<Judgement> Selftest::judge_behind(const Victim& victim, const json::object& exec) const {
  Victim there = victim;
  auto instead = victim.instead.find(wall_);
  if (instead != victim.instead.end()) there.verdicts = instead->second.verdicts;
  ATOLL_TRY(Judgement judgement, judge(there, exec));
  if (judgement.outcome == Outcome::kHeld) {
    ATOLL_TRY(Judgement in_jail, judge(victim, exec));
    if (in_jail.outcome != Outcome::kHeld)
      judgement.detail += " (" + judgement.verdict + ": " + instead->second.why + ")";
    return judgement;
  }
  auto reason = victim.not_behind.find(wall_);
  if (reason == victim.not_behind.end()) return judgement;
  return Judgement{Outcome::kSkipped, "proves nothing there: " + reason->second, judgement.verdict};
}

Result<void> Selftest::look_at_host(Attempt& attempt) {
  ATOLL_TRY(HostChanges changes, oracle_.take_changes());
  for (const std::string& change : changes.canaries) call_broken(attempt.judgement, change);
  attempt.host_changes = std::move(changes.of_all);
  auto beat = sandboxes_.beat();
  if (!beat)
    attempt.host_changes.push_back("the neighbour suffers: " + beat.error().message());
  else if (*beat != beat_)
    call_broken(attempt.judgement, "the neighbour sees other bytes in a shared file");
  return {};
}

// Changes between two victims are nobody's; only later ones are charged to the next victim.
Result<void> Selftest::report_meanwhile() {
  ATOLL_TRY(HostChanges changes, oracle_.take_changes());
  for (const std::string& change : changes.canaries)
    report_.add_finding(Outcome::kBroke, "while no victim ran: " + change);
  for (const std::string& change : changes.of_all)
    report_.add_finding(Outcome::kHostChanged, "while no victim ran: " + change);
  return {};
}

Result<Attempt> Selftest::try_victim(const Victim& victim, const std::string& user) {
  ATOLL_TRY_VOID(report_meanwhile());
  Attempt attempt;
  Judgement& judgement = attempt.judgement;
  auto exec = sandboxes_.run(victim, user);
  if (!exec) {
    judgement.detail = exec.error().message();
  } else {
    ATOLL_TRY(judgement, judge_behind(victim, *exec));
    ATOLL_TRY(std::string output, output_bytes(*exec, "stdout"));
    ATOLL_TRY(std::string errors, output_bytes(*exec, "stderr"));
    if (oracle_.is_leak(output) || oracle_.is_leak(errors))
      call_broken(judgement, "it printed the host's secret");
  }
  // While its sandbox still lives: it may hold what others need.
  ATOLL_TRY_VOID(look_at_host(attempt));
  auto removed = sandboxes_.forget_fresh();
  if (!removed)
    call_broken(judgement, "its sandbox cannot be removed: " + removed.error().message());
  return attempt;
}

Result<void> Selftest::run(const std::vector<Victim>& victims) {
  ATOLL_TRY_VOID(sandboxes_.start_neighbour());
  ATOLL_TRY(beat_, sandboxes_.beat());
  ATOLL_TRY_VOID(oracle_.begin());
  for (const Victim& victim : victims) {
    for (const std::string& user : victim.users) {
      ATOLL_TRY(Judgement judgement, judge_attempts([&] { return try_victim(victim, user); }));
      report_.add(victim, user, judgement);
    }
  }
  ATOLL_TRY(std::vector<std::string> other, oracle_.find_other_bytes());
  for (const std::string& finding : other) report_.add_finding(Outcome::kBroke, finding);
  return {};
}

}  // namespace

Result<int> run_command(const CommandLine& line, const SelftestCommand& command) {
  ATOLL_TRY(std::string share, find_share());
  ATOLL_TRY(std::vector<Victim> victims, read_victims(share, command.only));
  if (command.mode == SelftestCommand::Mode::kList) return print_list(victims, line.format);
  if (geteuid() != 0)
    return Error(Code::kDenied, "atoll selftest must run as root: it watches the host meanwhile");
  ATOLL_TRY(Server server, find_server(line.places, line.server));
  auto ready = check_ready(server.host, server.port);
  if (!ready)
    return std::move(ready).error().with_context(
        "selftest attacks a running Atoll; start it first");
  ATOLL_TRY_VOID(install(line.places, share));

  // In this order: the oracle forks, and the guard starts a thread.
  ATOLL_TRY(std::unique_ptr<HostOracle> oracle, HostOracle::create(line.places));
  InterruptGuard guard;
  std::string wall = command.isolation.empty() ? "jail" : command.isolation;
  Sandboxes sandboxes(std::move(server), oracle->environment(), wall);
  guard.on_interrupt([&sandboxes, &oracle](int) {
    auto removed = sandboxes.remove_all();
    if (!removed) fprintf(stderr, "atoll: %s\n", removed.error().message().c_str());
    (void)oracle->remove_directory();
  });
  Report report(line.format);
  if (command.only.empty()) ask_filter(report);
  auto done = Selftest(sandboxes, *oracle, report, wall).run(victims);
  auto removed = sandboxes.remove_all();
  guard.on_interrupt({});
  if (!done) return std::move(done).error();
  if (!removed) return std::move(removed).error();
  return report.finish();
}

}  // namespace atl::cli::selftest
