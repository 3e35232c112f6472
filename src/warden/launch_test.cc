#include "warden/launch.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "warden/removal.h"
#include "warden/testing/forked_warden_test.h"

namespace atl::warden {
namespace {

using namespace testing;

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

}  // namespace
}  // namespace atl::warden
