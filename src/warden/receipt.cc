#include "warden/receipt.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "agent/birth_record.h"
#include "base/clock.h"
#include "base/file.h"
#include "linux/fact_comparison.h"
#include "linux/file_rules.h"
#include "linux/pidfd.h"
#include "linux/process_facts.h"
#include "linux/sealed_memory.h"
#include "linux/traced_filter.h"
#include "linux/unix_socket.h"
#include "warden/enforced_limits.h"
#include "warden/notary.h"
#include "warden/uid_ranges.h"

namespace atl::warden {
namespace {

using linux::Fact;
using linux::Facts;

constexpr int kProbeTimeoutMs = 10'000;
constexpr size_t kMaxProbeBytes = 32 * 1024;
constexpr const char* kReceiptName = "receipt";
constexpr uid_t kUserInside = 1000;

struct ProbeMessage {
  pid_t pid;
  std::string text;
};

Result<ProbeMessage> receive_from_probe(int socket, char kind) {
  ATOLL_TRY(auto message, linux::receive_text(socket, kMaxProbeBytes, kProbeTimeoutMs));
  if (message.text.empty()) return Error::from_errno("the probe is gone", EPIPE);
  std::string rest = message.text.substr(1);
  if (message.text[0] == agent::kProbeFailed)
    return Error::from_errno("the probe failed: " + rest, ECANCELED);
  if (message.text[0] != kind || message.sender.value_or(0) <= 0)
    return Error::from_errno("unexpected message of the probe", EPROTO);
  return ProbeMessage{*message.sender, std::move(rest)};
}

Result<Facts> receive_inside(int socket, pid_t probe) {
  ATOLL_TRY(ProbeMessage message, receive_from_probe(socket, agent::kProbeFacts));
  if (message.pid != probe) return Error::from_errno("two probes", EPROTO);
  return linux::decode_facts(message.text);
}

// Whoever answered on the socket is in this isolate's groups, so nobody stands in for the probe.
Result<void> check_groups(const Host& host, const ReceiptSubject& subject, pid_t pid) {
  ATOLL_TRY(std::string groups, read_file(fmt::format("/proc/{}/cgroup", pid)));
  if (groups.find("/" + subject.id.string() + "/run/0\n") == std::string::npos)
    return Error::from_errno("the probe is not in its leaf", EBADE);
  for (linux::Controller controller : linux::kControllers) {
    if (host.cgroups.in_v2[static_cast<size_t>(controller)]) continue;
    std::string path = linux::v1_group_of(groups, controller);
    if (!path.ends_with("/" + subject.id.string()))
      return Error::from_errno("the probe is not in its v1 groups", EBADE);
  }
  return {};
}

Result<Facts> read_outside(const Host& host, const ReceiptSubject& subject, pid_t pid) {
  ATOLL_TRY(Fd pidfd, linux::open_pidfd(pid));
  ATOLL_TRY_VOID(check_groups(host, subject, pid));
  ATOLL_TRY(Facts facts, linux::read_process_facts(fmt::format("/proc/{}", pid)));
  ATOLL_TRY_VOID(linux::map_ids(facts, subject.first_uid, kUidsPerRange));
  ATOLL_TRY(std::string filter, linux::read_filter_of(pid));
  facts.push_back({"seccomp.filter", linux::as_blob(filter)});
  facts.push_back({"kernel", linux::kernel_release()});
  ATOLL_TRY(int landlock, linux::landlock_abi());
  facts.push_back({"landlock.version", std::to_string(landlock)});
  // While it lives the pid cannot have come to mean another process.
  if (linux::has_ended(pidfd.get())) return Error::from_errno("the probe died", ESRCH);
  return facts;
}

// What must be so, whatever the two columns agree on.
Facts demands(const ReceiptSubject& subject) {
  std::string user = fmt::format("{0} {0} {0} {0}", kUserInside);
  std::string map = fmt::format("0 {} {}", subject.first_uid, kUidsPerRange);
  std::string files = fmt::format("{0} {0} files", subject.request.open_files);
  std::string none(16, '0');
  return {{"uid", user},
          {"gid", user},
          {"groups", ""},
          {"uid_map", map},
          {"gid_map", map},
          {"capabilities.inheritable", none},
          {"capabilities.permitted", none},
          {"capabilities.effective", none},
          {"capabilities.bounding", none},
          {"capabilities.ambient", none},
          {"no_new_privs", "1"},
          {"seccomp.mode", "2"},
          {"seccomp.filters", "1"},
          {"rlimits.core_bytes", "1 1 bytes"},
          {"rlimits.open_files", files},
          {"descriptors", "0 1 2"}};
}

// A machine has no other processor than it was made with: the jail around one that is emulated has
// no device for anything else, and QEMU with KVM ends where that does not work.
const char* driver_lines(const agent::GuestLimits& guest) {
  constexpr const char* kLines[] = {
      "driver\tmicrovm\nvirtualization\temulated\n", "driver\tgvisor\nplatform\tsystrap\n",
      "driver\tmicrovm\nvirtualization\thardware\n", "driver\tgvisor\nplatform\tptrace\n"};
  return guest.memory_bytes == 0 ? "driver\tjail\n" : kLines[static_cast<size_t>(guest.kind)];
}

// Tab-separated, because values have blanks in them; the notary makes JSON of it.
Result<void> store(const ReceiptSubject& subject, const std::vector<linux::ComparedFact>& lines) {
  std::string text = fmt::format("sandbox\t{}\n", subject.id.view());
  text += fmt::format("made_at\t{}\n", to_rfc3339(SystemClock().wall_now()));
  text += driver_lines(subject.request.guest);
  text += fmt::format("atoll\t{}\n", ATOLL_VERSION);
  for (const linux::ComparedFact& line : lines)
    text += fmt::format("fact\t{}\t{}\t{}\n", line.name, line.outside, line.inside);
  ATOLL_TRY(Fd file, open_at(subject.record, kReceiptName, O_WRONLY | O_CREAT | O_EXCL, 0600));
  return write_all(file.get(), text);
}

}  // namespace

Result<void> write_receipt(const Host& host, const ReceiptSubject& subject) {
  // What needs no probe is read while it is being started.
  ATOLL_TRY(Request limits, read_enforced_limits(host, subject.id));
  ATOLL_TRY(Facts own, linux::read_namespace_facts(fmt::format("/proc/{}", getppid())));
  ATOLL_TRY(ProbeMessage hello, receive_from_probe(subject.probe, agent::kProbeHere));
  ATOLL_TRY(Facts outside, read_outside(host, subject, hello.pid));
  ATOLL_TRY(Facts inside, receive_inside(subject.probe, hello.pid));
  // Until it has told what it sees, the probe opens and closes files.
  ATOLL_TRY_VOID(linux::read_descriptors_again(outside, fmt::format("/proc/{}", hello.pid)));
  ATOLL_TRY(std::vector<linux::ComparedFact> lines, linux::compare_facts(outside, inside));
  ATOLL_TRY_VOID(linux::check_demands(outside, demands(subject)));
  ATOLL_TRY_VOID(linux::check_other_namespaces(own, outside));
  ATOLL_TRY_VOID(linux::check_landlock_layers(inside));
  ATOLL_TRY_VOID(linux::check_demands(limit_facts(limits), limit_facts(subject.request)));
  ATOLL_TRY_VOID(store(subject, lines));
  return linux::send_byte(subject.probe, 'G');
}

Result<std::string> sign_receipt(const Host& host, const SandboxId& id) {
  auto facts =
      open_at(host.isolates.get(), id.string() + "/" + kReceiptName, O_RDONLY | O_NOFOLLOW);
  if (!facts && facts.error().system_errno() == ENOENT)
    return Error(Code::kNotFound, "there is no receipt of " + id.string(), ENOENT);
  if (!facts) return std::move(facts).error();
  // Limits may have been changed since birth: they are told as they are now.
  ATOLL_TRY(std::string text, read_all(facts->get(), kMaxReceiptBytes));
  ATOLL_TRY(Request limits, read_enforced_limits(host, id));
  for (const Fact& limit : limit_facts(limits))
    text += fmt::format("fact\t{}\t{}\t{}\n", limit.name, limit.value, linux::kNobody);
  ATOLL_TRY(Fd whole, linux::make_sealed_memory("atoll-facts", text));
  return run_notary(host, whole.get());
}

}  // namespace atl::warden
