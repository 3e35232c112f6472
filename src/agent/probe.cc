#include "agent/probe.h"

#include <linux/landlock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/birth_record.h"
#include "agent/launcher.h"
#include "linux/file_rules.h"
#include "linux/process_facts.h"

namespace atl::agent {
namespace {

constexpr int kStartTimeoutMs = 10'000;
constexpr int kMaxLandlockLayers = 16;  // the kernel's

Result<void> send_message(int socket, char kind, std::string_view text) {
  std::string message = kind + std::string(text);
  if (send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return Error::system("send to the warden");
  return {};
}

Result<Fd> make_any_ruleset() {
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
  Fd rules(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!rules) return Error::system("create a ruleset");
  return rules;
}

// No file tells how many rulesets a process is under, but there is room for only so many: what can
// be added says what is there. Not to be undone, so it comes last.
Result<int> count_landlock_layers() {
  ATOLL_TRY(Fd rules, make_any_ruleset());
  int added = 0;
  while (added < kMaxLandlockLayers && syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0)
    ++added;
  if (added < kMaxLandlockLayers && errno != E2BIG) return Error::system("count rulesets");
  return kMaxLandlockLayers - added;
}

Result<linux::Facts> facts_inside(std::span<const sock_filter> filter) {
  ATOLL_TRY(linux::Facts facts, linux::read_process_facts("/proc/self"));
  facts.push_back({"seccomp.filter", linux::as_blob({reinterpret_cast<const char*>(filter.data()),
                                                     filter.size_bytes()})});
  facts.push_back({"kernel", linux::kernel_release()});
  ATOLL_TRY(int version, linux::landlock_abi());
  facts.push_back({"landlock.version", std::to_string(version)});
  int layers = 0;
  if (version > 0) {
    ATOLL_TRY(layers, count_landlock_layers());
  }
  facts.push_back({"landlock.layers", std::to_string(layers)});
  return facts;
}

// Behind the walls the pipe closes without a word.
Result<void> await_walls(int report) {
  pollfd waiting = {.fd = report, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kStartTimeoutMs) <= 0) return Error::from_errno("start probe", ETIMEDOUT);
  StartReport failure = {};
  ssize_t count = read(report, &failure, sizeof failure);
  if (count == 0) return {};
  if (count != sizeof failure) return Error::system("read the probe's report");
  return Error::from_errno(step_name(failure.step), failure.system_errno);
}

Result<Launched> launch_probe(Launcher& launcher, const Leaf& leaf, int socket, Becomes probe) {
  // A user by number: nothing of the image takes part.
  Start start = {.arguments = {"probe"}, .environment = {}, .directory = "/", .user = "1000:1000"};
  std::string payload = encode(leaf.number(), start).substr(kHeaderBytes);
  ATOLL_TRY(Launched launched, launcher.launch(leaf, start, payload, socket, probe));
  ATOLL_TRY_VOID(await_walls(launched.report.get()));
  return launched;
}

}  // namespace

Result<void> run_probe(std::span<const sock_filter> filter, const linux::Facts& more) {
  ATOLL_TRY_VOID(send_message(STDIN_FILENO, kProbeHere, ""));
  auto facts = facts_inside(filter);
  if (!facts) return send_message(STDIN_FILENO, kProbeFailed, facts.error().message());
  facts->insert(facts->end(), more.begin(), more.end());
  ATOLL_TRY_VOID(send_message(STDIN_FILENO, kProbeFacts, linux::encode_facts(*facts)));
  char release;
  // Also its end is a release: then the warden has given up.
  if (recv(STDIN_FILENO, &release, 1, 0) < 0) return Error::system("wait for the warden");
  return {};
}

Result<Launched> start_probe(Launcher& launcher, const Leaf& leaf, Fd socket, Becomes probe) {
  auto launched = launch_probe(launcher, leaf, socket.get(), probe);
  if (!launched) (void)send_message(socket.get(), kProbeFailed, launched.error().message());
  return launched;
}

}  // namespace atl::agent
