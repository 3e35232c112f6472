#include "gvisor/sentry.h"

#include <algorithm>

#include <fmt/format.h>

namespace atl::gvisor {
namespace {

constexpr const char* kId = "sandbox";

// Of process 1 before it confines itself: what it takes to mount, and what the agent keeps.
constexpr const char* kCapabilities =
    R"(["CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_FOWNER","CAP_FSETID","CAP_KILL","CAP_SETGID",)"
    R"("CAP_SETUID","CAP_SETPCAP","CAP_NET_BIND_SERVICE","CAP_SYS_CHROOT","CAP_SYS_PTRACE",)"
    R"("CAP_SYS_ADMIN","CAP_MKNOD","CAP_NET_ADMIN","CAP_NET_RAW"])";

}  // namespace

std::string sentry_configuration(const agent::GuestLimits& limits, Toolbox toolbox) {
  uint32_t files = std::max(limits.open_files, kSentryOpenFiles);
  std::string second;
  if (toolbox == Toolbox::kMounted)
    second = fmt::format(R"(,{{"destination":"{}","type":"erofs","source":"{}"}})", kGuestToolbox,
                         kToolboxFile);
  return fmt::format(
      R"({{"ociVersion":"1.0.0","hostname":"atoll","root":{{"path":"{0}","readonly":true}},)"
      R"("process":{{"user":{{"uid":0,"gid":0}},"args":["atoll-agent","{1}"],"env":[],"cwd":"/",)"
      R"("noNewPrivileges":true,"capabilities":{{"bounding":{2},"effective":{2},"permitted":{2}}},)"
      R"("rlimits":[{{"type":"RLIMIT_NOFILE","soft":{3},"hard":{3}}}]}},"mounts":[)"
      R"({{"destination":"/tmp","type":"bind","source":"{0}","options":["bind","size={4}",)"
      R"("mode=0755"]}},{{"destination":"/run","type":"tmpfs","source":"tmpfs",)"
      R"("options":["size=33554432","mode=0755"]}},)"
      // The C library of a program without a name believes in no /proc rather than in this one.
      R"({{"destination":"/proc","type":"tmpfs","source":"tmpfs","options":["size=4096"]}}{5}],)"
      R"("linux":{{}}}})",
      kDirectory, kGuestRole, kCapabilities, files, limits.disk_bytes, second);
}

std::vector<std::string> sentry_command(const SentryFds& fds, const agent::GuestLimits& limits) {
  bool has_toolbox = fds.toolbox >= 0;
  bool traces = limits.kind == agent::GuestKind::kTracingSentry;
  std::vector<std::string> words = {
      "runsc",
      fmt::format("--root={}", kDirectory),
      fmt::format("--platform={}", traces ? "ptrace" : "systrap"),
      "--network=none",
      "--net-raw",  // who has the capability; only process 1 has, until it is the agent
      "--overlay2=none",
      "--directfs=false",
      "--ignore-cgroups",
      "--host-uds=none",
      "--oci-seccomp=false",
      "--log=/dev/null",
      "boot",
      fmt::format("--bundle={}", kDirectory),
      fmt::format("--spec-fd={}", fds.configuration),
      fmt::format("--controller-fd={}", fds.control),
      fmt::format("--start-sync-fd={}", fds.started),
      fmt::format("--io-fds={}{}", fds.image, has_toolbox ? fmt::format(",{}", fds.toolbox) : ""),
      fmt::format("--gofer-mount-confs=erofs:none,none:anon{}", has_toolbox ? ",erofs:none" : ""),
      fmt::format("--gofer-filestore-fds={}", fds.layer),
      fmt::format("--stdio-fds={},{},{}", fds.input, fds.output, fds.error),
      fmt::format("--exec-fd={}", fds.program),
      fmt::format("--pass-fd={}:{}", fds.birth, kGuestBirthFd),
      fmt::format("--pass-fd={}:{}", fds.sudo, kGuestSudoFd),
      fmt::format("--pass-fd={}:{}", fds.copied_program, kGuestProgramFd),
      fmt::format("--cpu-num={}", (limits.cpu_millis + 999) / 1000),
      fmt::format("--total-memory={}", limits.memory_bytes),
      "--product-name=atoll"};
  if (!fds.files.empty())
    words.push_back(fmt::format("--fs-restore-fds={}", fmt::join(fds.files, ",")));
  words.push_back(kId);
  return words;
}

std::string loopback_call(Loopback loopback) {
  bool now = loopback == Loopback::kNow;
  std::string method = now ? "Network.CreateLinksAndRoutes" : "containerManager.SetNetworkArgs";
  return R"({"method":")" + method +
         R"(","arg":{"LoopbackLinks":[{"Name":"lo",)"
         R"("Addresses":[{"Address":"127.0.0.1","PrefixLen":8},{"Address":"::1",)"
         R"("PrefixLen":128},{"Address":"198.18.0.1","PrefixLen":0}],"Routes":[)"
         R"({"Destination":{"IP":"127.0.0.0","Mask":"/wAAAA=="},"Gateway":""},)"
         R"({"Destination":{"IP":"::1","Mask":"/////////////////////w=="},"Gateway":""},)"
         R"({"Destination":{"IP":"0.0.0.0","Mask":"AAAAAA=="},"Gateway":""}]}]}})";
}

std::string begin_call() {
  return fmt::format(R"({{"method":"containerManager.StartRoot","arg":"{}"}})", kId);
}

std::string keep_files_call() {
  return R"({"method":"containerManager.FSSave","arg":{"paths":[{"path":"/tmp"}]}})";
}

// Pages that are compressed would be no smaller where they are shared, and slower to begin with.
std::string lay_down_call() {
  return R"({"method":"containerManager.Checkpoint","arg":{"metadata":{"compression":"none"}}})";
}

std::string restore_call() { return R"({"method":"containerManager.Restore","arg":{}})"; }

bool is_success(const std::string& answer) { return answer.starts_with(R"({"success":true,)"); }

}  // namespace atl::gvisor
