#include "warden/testing/forked_warden_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/log.h"
#include "linux/syscall_filter.h"
#include "warden/startup.h"

namespace atl::warden::testing {
namespace {

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

}  // namespace

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
  EXPECT_TRUE(eventually([] { return waitpid(-1, nullptr, WNOHANG) < 0; }));
}

LaunchOutcome launch(const Host& host, const Request& request, Fault fault, int without_call) {
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

}  // namespace atl::warden::testing
