// Who programs are, with the real agent as process 1.
#include <signal.h>

#include <string>

#include "agent/exec_case_test.h"

namespace atl::agent {
namespace {

constexpr const char* kWho = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; pwd";

Start as_user(const std::string& user, const std::string& script = kWho) {
  Start start = shell(script);
  start.user = user;
  start.directory = "";
  return start;
}

// On a root of its own: its /etc is what the test writes.
class AgentUsers : public ExecCase {
 protected:
  AgentUsers() : ExecCase({.root_bytes = 16 << 20}) {}

  void as_root(const std::string& script) {
    Record done = run(as_user("root", "set -e; " + script));
    ASSERT_TRUE(done.exit);
    ASSERT_EQ(done.exit->status, 0) << script << done.err;
  }
  void write_passwd(const std::string& text) {
    Start start = as_user("root", "mkdir -p /etc && rm -rf /etc/passwd && cat >/etc/passwd");
    start.input = text;
    ASSERT_EQ(run(start).exit->status, 0);
  }
  // The names that need no entry still work, and no other does.
  void expect_only_the_known(const char* what) {
    EXPECT_EQ(run(as_user("user", "id -u")).out, "1000\n") << what;
    EXPECT_EQ(run(as_user("root", "id -u")).out, "0\n") << what;
    EXPECT_EQ(run(as_user("1234", "id -u")).out, "1234\n") << what;
    Record done = run(as_user("alice"));
    ASSERT_TRUE(done.exit) << what;
    EXPECT_EQ(done.exit->status, 126) << what;
    EXPECT_EQ(done.err, "atoll: no such user: alice\n") << what;
  }
};

INSTANTIATE_TEST_SUITE_P(StartedBy, AgentUsers, testing::Values(Starter::kAgent, Starter::kSpawner),
                         starter_name);

constexpr const char* kAlice = "alice:x:1001:1002::/home/alice:/bin/bash\n";

TEST_P(AgentUsers, EntryDecidesIdsGroupsHomeAndShell) {
  write_passwd(kAlice);
  as_root("printf 'audio:x:29:alice\\nstaff:x:50:bob,alice\\n' >/etc/group");
  EXPECT_EQ(run(as_user("alice")).out,
            "1001\n1002\n1002 29 50\n/home/alice alice alice /bin/bash\n/\n")
      << "the home does not exist";
  as_root("mkdir -p /home/alice && chown 1001 /home/alice");
  EXPECT_EQ(run(as_user("1001")).out,
            "1001\n1002\n1002 29 50\n/home/alice alice alice /bin/bash\n/home/alice\n");
  EXPECT_EQ(run(as_user("1001:7")).out, "1001\n7\n7\n/ 1001 1001 /bin/sh\n/\n");
}

TEST_P(AgentUsers, KnownNamesNeedNoFile) {
  EXPECT_EQ(run(as_user("user")).out, "1000\n1000\n1000\n/home/user user user /bin/sh\n/\n");
  EXPECT_EQ(run(as_user("root")).out, "0\n0\n0\n/root root root /bin/sh\n/\n");
  expect_only_the_known("no file");
}

TEST_P(AgentUsers, GivenEnvironmentAndDirectoryStay) {
  Start start = as_user("root");
  start.environment.insert(start.environment.end(), {"HOME=/a", "USER=b", "LOGNAME=c", "SHELL=d"});
  start.directory = "/usr";
  EXPECT_EQ(run(start).out, "0\n0\n0\n/a b c d\n/usr\n");
}

TEST_P(AgentUsers, HomeThatMayNotBeEnteredIsAFailure) {
  write_passwd(kAlice);
  as_root("mkdir -p /home/alice && chmod 700 /home/alice");
  Record done = run(as_user("alice"));
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->status, 126);
  EXPECT_EQ(done.err, "atoll: chdir home of alice: Permission denied\n");
}

TEST_P(AgentUsers, UidZeroHasRootsCapabilitiesUnderAnyNameAndOthersNone) {
  constexpr const char* kLook = "grep -E 'Cap(Prm|Bnd)' /proc/self/status | cut -f2";
  write_passwd(std::string(kAlice) + "toor:x:0:5::/:/bin/sh\nroot:x:1001:1001::/:/bin/sh\n");
  for (const char* user : {"toor", "root", "0", "0:7"})
    EXPECT_EQ(run(as_user(user, kLook)).out, "00000000000404fb\n00000000000404fb\n") << user;
  for (const char* user : {"user", "alice", "1001", "65535", "1:0"})
    EXPECT_EQ(run(as_user(user, kLook)).out, "0000000000000000\n0000000000000000\n") << user;
}

TEST_P(AgentUsers, WhatIsNoUserIsTheProgramsFailure) {
  for (const char* user :
       {"-1", "4294967295", "65536", "1000:0:extra", "1000:", "root:root", " "}) {
    Record done = run(as_user(user));
    ASSERT_TRUE(done.exit) << user;
    EXPECT_EQ(done.exit->status, 126) << user;
    EXPECT_EQ(done.err, std::string("atoll: no such user: ") + user + "\n");
    EXPECT_EQ(done.out, "");
  }
}

TEST_P(AgentUsers, HostileFilesHaveNoEntries) {
  std::string entry =
      std::string("printf '") + "alice:x:1001:1002::/:/bin/sh\\n" + "' >/etc/passwd";
  as_root("mkdir -p /etc; " + entry);
  ASSERT_EQ(run(as_user("alice", "id -u")).out, "1001\n") << "it is read at all";
  as_root("head -c 300000 /dev/zero | tr '\\0' '\\n' >>/etc/passwd");
  expect_only_the_known("large");
  as_root(entry + "; truncate -s 8T /etc/passwd");
  expect_only_the_known("huge and sparse");
  as_root("rm /etc/passwd; mkfifo /etc/passwd");
  expect_only_the_known("FIFO");
  as_root("rm /etc/passwd; mkdir /etc/passwd");
  expect_only_the_known("directory");
  for (const char* target : {"/proc/kmsg", "/proc/self/fd/0", "/proc/1/environ", "/dev/ptmx",
                             "/dev/zero", "/etc/passwd", "/nonexistent"}) {
    as_root(std::string("rm -rf /etc/passwd; ln -s ") + target + " /etc/passwd");
    expect_only_the_known(target);
  }
  as_root("rm /etc/passwd; mv /etc /real; ln -s /real /etc; " + entry);
  EXPECT_EQ(run(as_user("alice", "id -u")).out, "1001\n") << "links within the root are followed";
}

class AgentSignals : public ExecCase {};

INSTANTIATE_TEST_SUITE_P(StartedBy, AgentSignals,
                         testing::Values(Starter::kAgent, Starter::kSpawner), starter_name);

TEST_P(AgentSignals, EveryNumberReachesTheMainProcess) {
  for (int number = 1; number <= 64; ++number) {
    bool harmless = number == SIGCHLD || number == SIGCONT || number == SIGURG ||
                    number == SIGWINCH || number == SIGSTOP || number == SIGTSTP ||
                    number == SIGTTIN || number == SIGTTOU;
    if (harmless) continue;
    uint32_t exec = static_cast<uint32_t>(number);
    daemon_.start(exec, shell("echo up; exec sleep 60"));
    ASSERT_TRUE(prints(exec, "up"));
    // It may still be the shell, which catches some.
    while (!record(exec).exit) {
      daemon_.send_raw(encode_signal(exec, static_cast<uint8_t>(number)));
      daemon_.run_until([&] { return record(exec).ended(); }, std::chrono::milliseconds(100));
    }
    EXPECT_EQ(daemon_.finish(exec).exit->status, number);
    EXPECT_EQ(record(exec).exit->ending, Ending::kSignaled) << number;
    EXPECT_EQ(record(exec).exit->cause, Cause::kClient) << number;
  }
}

TEST_P(AgentSignals, StopHoldsTheProgramAndContinueLetsItGoOn) {
  daemon_.start(1, shell("echo up; while :; do sleep 0.05; echo tick; done"));
  ASSERT_TRUE(prints(1, "tick"));
  daemon_.send_raw(encode_signal(1, SIGSTOP));
  ASSERT_TRUE(daemon_.run_until([this] { return sandbox_.has_program("sh", 'T'); }));
  ASSERT_TRUE(catches_up(daemon_));
  size_t before = record(1).out.size();
  linger(daemon_, std::chrono::milliseconds(300));
  EXPECT_EQ(record(1).out.size(), before);
  daemon_.send_raw(encode_signal(1, SIGCONT));
  EXPECT_TRUE(daemon_.run_until([&] { return record(1).out.size() > before; }));
  kill(1);
  EXPECT_EQ(daemon_.finish(1).exit->status, SIGKILL);
}

TEST_P(AgentSignals, NumberThatIsNoneBreaksTheProtocol) {
  for (uint8_t number : {0, 65, 255}) {
    daemon_.start(1, shell("echo up; sleep 60"));
    ASSERT_TRUE(prints(1, "up"));
    daemon_.send_raw(encode_signal(1, number));
    EXPECT_TRUE(daemon_.is_dropped()) << int{number};
    daemon_.connect();
  }
  kill(1);
  EXPECT_TRUE(daemon_.finish(1).exit);
}

}  // namespace
}  // namespace atl::agent
