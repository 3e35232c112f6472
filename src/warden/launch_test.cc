#include "warden/launch.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "base/log.h"
#include "linux/syscall_filter.h"
#include "warden/images.h"
#include "warden/removal.h"
#include "warden/startup.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

constexpr auto kReplaced = std::filesystem::copy_options::overwrite_existing;

using namespace testing;

// Runs `body` in a process of its own that has made itself a warden, and removes all of it
// afterwards.
void as_warden(const Directories& directories, const std::function<void(Host&)>& body) {
  pid_t child = fork();
  if (child == 0) {
    configure_log("warden_test", LogLevel::kError);
    auto host = open_host(directories.options());
    bool ready = host.ok() && enter_own_namespaces().ok();
    if (ready) {
      auto prepared = prepare(*host, directories.options());
      EXPECT_TRUE(prepared.ok()) << prepared.error().message();
      ready = prepared.ok();
    }
    EXPECT_TRUE(ready);
    if (ready) body(*host);
    fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(run_remove_all(directories), 0);
}

void reap_all() {
  for (int i = 0; i < 200; ++i) {
    if (waitpid(-1, nullptr, WNOHANG) < 0) return;
    usleep(5'000);
  }
}

// A kernel without this call, for the helper and all it starts.
bool take_away(int call) {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<uint32_t>(call)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EOPNOTSUPP},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  return linux::load_syscall_filter(program).ok();
}

// As the service does it: in a forked helper.
LaunchOutcome launch(const Host& host, const Request& request, Fault fault, int without_call = -1) {
  int answer[2];
  EXPECT_EQ(pipe(answer), 0);
  pid_t helper = fork();
  if (helper == 0) {
    if (without_call >= 0 && !take_away(without_call)) _exit(1);
    LaunchOutcome outcome = Launch(host, request, fault).run();
    ssize_t written = write(answer[1], &outcome, sizeof outcome);
    _exit(written == sizeof outcome ? 0 : 1);
  }
  close(answer[1]);
  LaunchOutcome outcome = {};
  EXPECT_EQ(read(answer[0], &outcome, sizeof outcome), static_cast<ssize_t>(sizeof outcome));
  close(answer[0]);
  waitpid(helper, nullptr, 0);
  return outcome;
}

TEST(Launch, AFailureAtAnyStepLeavesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  as_warden(directories, [&](Host& host) {
    // The image stays mounted once it was used, so use it before the first count.
    SandboxId first = SandboxId::draw();
    ASSERT_EQ(launch(host, launch_request(first, image), {}).status, Status::kOk);
    ASSERT_TRUE(remove_isolate(host, first).ok());
    reap_all();
    auto before = traces(host.run_dir, getpid());
    bool v1 = host.cgroups.uses_v1();
    for (uint16_t number = 1; number < kLastStep; ++number) {
      Step step = static_cast<Step>(number);
      LaunchOutcome outcome = launch(host, launch_request(SandboxId::draw(), image), {step});
      if (step == Step::kSpawner && !v1) continue;
      EXPECT_EQ(outcome.status, Status::kFailed) << step_name(step);
      EXPECT_EQ(outcome.step, step) << step_name(outcome.step);
      EXPECT_EQ(outcome.system_errno, ECANCELED) << step_name(step);
      reap_all();
      EXPECT_EQ(traces(host.run_dir, getpid()), before) << step_name(step);
    }
  });
}

// What each protection is made with, and the step that must notice its absence. The last ones are
// used by the agent for every program, so it is the probe that cannot be started. kNone: refused
// before anything is made. An agent that cannot start its probe ends, and the helper may see that
// before it comes to wait for the probe: `early` is that step.
struct Protection {
  const char* what;
  int call;
  Step step;
  Step early = Step::kNone;
};
constexpr Protection kProtections[] = {
    {"namespaces and groups at birth", SYS_clone3, Step::kCgroup},
    {"a cgroup namespace", SYS_unshare, Step::kCgroup},
    {"an owner of the user namespace", SYS_setresuid, Step::kClone},
    {"a group namespace and a network to join", SYS_setns, Step::kClone},
    {"idmapped, nosuid, read-only mounts", SYS_mount_setattr, Step::kIdmap},
    {"mounts of our own only", SYS_mount, Step::kNamespaces},
    {"a host name of its own", SYS_sethostname, Step::kNamespaces},
    {"a fresh root", SYS_fsopen, Step::kRoot},
    {"mounts by descriptor", SYS_move_mount, Step::kRoot},
    {"targets that are no links", SYS_openat2, Step::kDevices},
    {"the root itself", SYS_pivot_root, Step::kPivot},
    {"no way back to the host", SYS_umount2, Step::kPivot},
    {"limits of processes", SYS_prlimit64, Step::kNone},
    {"no_new_privs and bounding set", SYS_prctl, Step::kClone},
    {"capabilities given up", SYS_capset, Step::kClone},
    {"descriptors closed", SYS_close_range, Step::kAgent},
    {"a sealed program", SYS_execveat, Step::kAgent},
    {"file rules where there is Landlock", SYS_landlock_restrict_self, Step::kReceipt,
     Step::kAgent},
    {"the filter of programs", SYS_seccomp, Step::kReceipt, Step::kAgent},
    {"the view from outside", SYS_ptrace, Step::kReceipt},
};

TEST(Launch, WithoutAnyOneProtectionNothingIsStarted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  as_warden(directories, [&](Host& host) {
    SandboxId first = SandboxId::draw();
    ASSERT_EQ(launch(host, launch_request(first, image), {}).status, Status::kOk);
    ASSERT_TRUE(remove_isolate(host, first).ok());
    reap_all();
    auto before = traces(host.run_dir, getpid());
    for (const Protection& protection : kProtections) {
      LaunchOutcome outcome =
          launch(host, launch_request(SandboxId::draw(), image), {}, protection.call);
      Status wanted = protection.step == Step::kNone ? Status::kRefused : Status::kFailed;
      EXPECT_EQ(outcome.status, wanted) << protection.what;
      bool early = protection.early != Step::kNone && outcome.step == protection.early;
      EXPECT_EQ(outcome.step, early ? protection.early : protection.step)
          << protection.what << ": " << step_name(outcome.step) << " " << outcome.system_errno;
      reap_all();
      EXPECT_EQ(traces(host.run_dir, getpid()), before) << protection.what;
    }
  });
}

TEST(Launch, AHelperKilledAtAnyMomentCanBeRemoved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  as_warden(directories, [&](Host& host) {
    SandboxId first = SandboxId::draw(), second = SandboxId::draw();
    ASSERT_EQ(launch(host, launch_request(first, image), {}).status, Status::kOk);
    ASSERT_TRUE(remove_isolate(host, first).ok());
    // The moments are spread over what a launch takes on this host.
    auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(launch(host, launch_request(second, image), {}).status, Status::kOk);
    std::chrono::duration<double, std::micro> whole = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(remove_isolate(host, second).ok());
    reap_all();
    auto before = traces(host.run_dir, getpid());
    auto step_us = std::max<useconds_t>(150, static_cast<useconds_t>(whole.count() / 40));
    for (useconds_t after_us = 0; after_us < 40 * step_us; after_us += step_us) {
      SandboxId id = SandboxId::draw();
      Request request = launch_request(id, image);
      pid_t helper = fork();
      if (helper == 0) {
        Launch(host, request).run();
        _exit(0);
      }
      usleep(after_us);
      kill(helper, SIGKILL);
      waitpid(helper, nullptr, 0);
      auto removed = remove_isolate(host, id);
      EXPECT_TRUE(removed.ok()) << after_us << " us: " << removed.error().message();
      reap_all();
      EXPECT_EQ(traces(host.run_dir, getpid()), before) << after_us << " us";
    }
  });
}

template <typename Number>
Number median(std::vector<Number> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// A static program, not isolated: fork, execve, its end.
double plain_start_us() {
  std::string program = program_path("warden-test-probe");
  auto begin = std::chrono::steady_clock::now();
  pid_t child = fork();
  if (child == 0) {
    execl(program.c_str(), program.c_str(), "end", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return microseconds_since(begin);
}

// What a launch took without the groups, which will be made beforehand. While the helper moves the
// spawner into v1 groups, the jail is built and the agent executed: so much of that step stays.
double without_groups_us(double whole_us, const LaunchOutcome& outcome, double plain_us) {
  auto spent = [&](Step step) { return outcome.elapsed_us[static_cast<size_t>(step)]; };
  double jail_us = plain_us;
  for (Step step : {Step::kNamespaces, Step::kRoot, Step::kDevices, Step::kProc, Step::kMasks,
                    Step::kPivot, Step::kNetwork, Step::kCapabilities})
    jail_us += spent(step);
  return whole_us - spent(Step::kCgroup) - std::max(0.0, spent(Step::kSpawner) - jail_us);
}

TEST(Launch, CostOfEachStep) {
  if (!getenv("ATOLL_BENCH")) GTEST_SKIP() << "set ATOLL_BENCH=1 to measure";
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  as_warden(directories, [&](Host& host) {
    constexpr size_t kCycles = 100;
    std::array<std::vector<uint32_t>, kLastStep + 1> spent;
    std::vector<double> plain, whole, without_groups;
    for (size_t i = 0; i < kCycles; ++i) {
      SandboxId id = SandboxId::draw();
      plain.push_back(plain_start_us());
      auto begin = std::chrono::steady_clock::now();
      LaunchOutcome outcome = launch(host, launch_request(id, image), {});
      whole.push_back(microseconds_since(begin));
      ASSERT_EQ(outcome.status, Status::kOk);
      without_groups.push_back(without_groups_us(whole.back(), outcome, plain.back()));
      for (size_t step = 0; step <= kLastStep; ++step)
        spent[step].push_back(outcome.elapsed_us[step]);
      ASSERT_TRUE(remove_isolate(host, id).ok());
      while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    }
    for (size_t step = 1; step <= kLastStep; ++step) {
      std::sort(spent[step].begin(), spent[step].end());
      printf("%-14s p50 %6u us  p90 %6u us\n",
             std::string(step_name(static_cast<Step>(step))).c_str(), spent[step][kCycles / 2],
             spent[step][kCycles * 9 / 10]);
    }
    printf("plain fork and exec %.2f ms, launch %.2f ms, without groups %.2f ms\n",
           median(plain) / 1000, median(whole) / 1000, median(without_groups) / 1000);
    printf("isolation adds %.2f ms\n", (median(without_groups) - median(plain)) / 1000);
  });
}

// What starting from a built image costs before anybody has used it, and after. Of small images, or
// of the file that ATOLL_IMAGE_FILE names.
TEST(Launch, CostOfTheMountOfAnImage) {
  if (!getenv("ATOLL_BENCH")) GTEST_SKIP() << "set ATOLL_BENCH=1 to measure";
  Directories directories;
  std::vector<Digest> images;
  const char* real = getenv("ATOLL_IMAGE_FILE");
  const size_t count = real != nullptr ? 8 : 50;
  for (size_t i = 0; i < count; ++i) {
    images.push_back(Digest::from_bytes(directories.make_image(kPlainImage)));
    std::string made = directories.state() + "/images/" + images.back().string() + ".erofs";
    if (real != nullptr) std::filesystem::copy_file(real, made, kReplaced);
  }
  as_warden(directories, [&](Host& host) {
    auto timed = [&](const Digest& image) {
      auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(mount_image(host, image).ok());
      return microseconds_since(begin);
    };
    std::vector<double> first, again;
    for (const Digest& image : images) first.push_back(timed(image));
    for (const Digest& image : images) again.push_back(timed(image));
    std::sort(first.begin(), first.end());
    printf("first mount p50 %.0f us  p90 %.0f us, mounted already p50 %.0f us\n", first[count / 2],
           first[count * 9 / 10], median(again));
  });
}

TEST(Launch, CostOfACycle) {
  if (!getenv("ATOLL_BENCH")) GTEST_SKIP() << "set ATOLL_BENCH=1 to measure";
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  RunningWarden warden(directories, 0);
  auto client = Client::connect(directories.run());
  ASSERT_TRUE(client.has_value());
  std::vector<double> launches, removals;
  auto timed = [&](const Request& request) {
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(client->ask(request).status, Status::kOk);
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    return spent.count();
  };
  for (int i = 0; i < 100; ++i) {
    SandboxId id = SandboxId::draw();
    launches.push_back(timed(launch_request(id, image)));
    removals.push_back(timed(simple_request(Operation::kRemove, id)));
  }
  std::sort(launches.begin(), launches.end());
  std::sort(removals.begin(), removals.end());
  printf("launch  p50 %.2f ms  p90 %.2f ms\nremoval p50 %.2f ms  p90 %.2f ms\n", launches[50],
         launches[90], removals[50], removals[90]);
}

}  // namespace
}  // namespace atl::warden
