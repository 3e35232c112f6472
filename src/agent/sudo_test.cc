// sudo and the agent together: who the command is, where it runs, how its end is told.
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/fixture_test.h"
#include "base/file.h"

namespace atl::agent {
namespace {

class Sudo : public testing::TestWithParam<Starter> {
 protected:
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
  }
  void TearDown() override {
    if (!sandbox_.problem().empty()) return;
    EXPECT_TRUE(daemon_.run_until([this] { return sandbox_.leaves().empty(); }));
    EXPECT_TRUE(sandbox_.agent_is_alive());
    EXPECT_EQ(daemon_.contradiction(), "");
  }
  // `sudo` in the script is ours.
  Start with_sudo(const std::string& script) const {
    return shell("sudo() { " + sudo_.path() + " \"$@\"; }\nSUDO=" + sudo_.path() + "\n" + script);
  }
  Record run(const Start& start) {
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    return daemon_.finish(exec);
  }
  std::string output_of(const std::string& script) {
    Record done = run(with_sudo(script));
    return done.out + done.err;
  }
  int status_of(const std::string& script) {
    Record done = run(with_sudo(script));
    return done.exit ? done.exit->status : -1;
  }

  ReachableProgram sudo_{ATOLL_SUDO_PATH};
  TestSandbox sandbox_{GetParam()};
  TestDaemon daemon_{sandbox_};
  uint32_t next_exec_ = 1;
};

INSTANTIATE_TEST_SUITE_P(StartedBy, Sudo, testing::Values(Starter::kAgent, Starter::kSpawner),
                         [](const auto& starter) {
                           return starter.param == Starter::kAgent ? "Agent" : "Spawner";
                         });

TEST_P(Sudo, RunsTheCommandAsRootOrUser) {
  EXPECT_EQ(output_of("id -u; sudo id -u; sudo id -g; sudo id -G"), "1000\n0\n0\n0\n");
  EXPECT_EQ(output_of("sudo -u user id -u; sudo -u '#0' id -u; sudo -n -u root -- id -u"),
            "1000\n0\n0\n");
  EXPECT_EQ(output_of("sudo $SUDO -u user $SUDO id -u"), "0\n");
}

TEST_P(Sudo, RunsTheCommandAsAnyUserOfThePasswdFile) {
  EXPECT_EQ(output_of("sudo -u daemon id -un; sudo -u '#1234' id -u; sudo -u daemon sh -c "
                      "'echo $USER $LOGNAME $HOME $SHELL; grep CapPrm /proc/self/status'"),
            "daemon\n1234\ndaemon daemon /usr/sbin /usr/sbin/nologin\n"
            "CapPrm:\t0000000000000000\n");
  EXPECT_EQ(output_of("sudo -u daemon -i pwd"), "/usr/sbin\n");
}

TEST_P(Sudo, GivesTheWallsOfAnExecOfThatUser) {
  constexpr const char* kLook =
      "grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status; ulimit -c; ulimit -n; umask";
  Start root = shell(kLook);
  root.user = "root";
  std::string as_root = run(root).out;
  std::string as_user = run(shell(kLook)).out;
  ASSERT_NE(as_root, "");
  ASSERT_NE(as_root, as_user);
  EXPECT_EQ(output_of(std::string("sudo sh -c \"") + kLook + "\""), as_root);
  EXPECT_EQ(output_of(std::string("sudo $SUDO -u user sh -c \"") + kLook + "\""), as_user);
}

TEST_P(Sudo, CommandMayOpenNoMoreFilesThanItsCaller) {
  EXPECT_EQ(output_of("ulimit -n 100; sudo sh -c 'ulimit -Sn; ulimit -Hn'"), "100\n100\n");
}

TEST_P(Sudo, RunsInTheLeafOfItsCaller) {
  EXPECT_EQ(output_of("mine=$(cat /proc/self/cgroup); theirs=$(sudo cat /proc/self/cgroup);"
                      "[ \"$mine\" = \"$theirs\" ] && echo same"),
            "same\n");
}

TEST_P(Sudo, KeepsStreamsDirectoryAndEnvironment) {
  EXPECT_EQ(output_of("echo text | sudo cat"), "text\n");
  EXPECT_EQ(run(with_sudo("sudo sh -c 'echo out; echo err >&2'")).err, "err\n");
  EXPECT_EQ(output_of("cd /usr/bin; sudo pwd; sudo -D /usr pwd; sudo -D .. pwd"),
            "/usr/bin\n/usr\n/usr\n");
  EXPECT_EQ(output_of("export WORD=kept; sudo MORE=new sh -c "
                      "'echo $WORD $MORE $HOME $USER $SUDO_USER $SUDO_UID $SUDO_GID'"),
            "kept new /root root user 1000 1000\n");
}

TEST_P(Sudo, EndsAsItsCommandEnds) {
  EXPECT_EQ(status_of("sudo sh -c 'exit 7'"), 7);
  EXPECT_EQ(status_of("sudo true"), 0);
  Record killed = run(with_sudo("exec $SUDO sh -c 'kill -TERM $$'"));
  ASSERT_TRUE(killed.exit);
  EXPECT_EQ(killed.exit->ending, Ending::kSignaled);
  EXPECT_EQ(killed.exit->status, SIGTERM);
}

TEST_P(Sudo, SaysWhyACommandCannotBeExecuted) {
  EXPECT_EQ(status_of("sudo no-such-command"), 127);
  EXPECT_EQ(output_of("sudo no-such-command"), "sudo: no-such-command: command not found\n");
  EXPECT_EQ(status_of("sudo /etc/passwd"), 126);
  EXPECT_EQ(status_of("sudo -D /nonexistent true"), 1);
  EXPECT_EQ(status_of("sudo --no-such-option true"), 1);
  EXPECT_EQ(status_of("sudo -u no-such-user true"), 1);
  EXPECT_EQ(output_of("sudo -u no-such-user true"), "sudo: unknown user no-such-user\n");
  EXPECT_EQ(status_of("sudo"), 1);
  EXPECT_EQ(status_of("sudo -v && sudo -l && sudo -k && sudo -V >/dev/null"), 0);
}

TEST_P(Sudo, ForwardsSignals) {
  EXPECT_EQ(output_of("file=$(mktemp)\n$SUDO sh -c 'trap \"echo caught; exit 4\" TERM; echo ready;"
                      " while :; do sleep 0.05; done' >$file &\n"
                      "until grep -q ready $file; do sleep 0.05; done\n"
                      "kill -TERM $!; wait $!; echo $?; cat $file;"
                      "rm $file"),
            "4\nready\ncaught\n");
}

TEST_P(Sudo, ItsDeathEndsTheCommand) {
  EXPECT_EQ(output_of("file=$(mktemp)\n$SUDO sh -c 'echo $$; exec sleep 1000' >$file &\n"
                      "until [ -s $file ]; do sleep 0.05; done\n"
                      "read pid <$file; rm $file; kill -KILL $!\n"
                      "while [ -e /proc/$pid ]; do sleep 0.05; done; echo gone"),
            "gone\n");
}

TEST_P(Sudo, TheTimeOfTheExecIsTheCommandsToo) {
  Start start = with_sudo("exec $SUDO sh -c 'sleep 1000 & sleep 1000'");
  start.timeout_ms = 700;
  Record done = run(start);
  ASSERT_TRUE(done.exit);
  EXPECT_EQ(done.exit->cause, Cause::kWallTime);
}

TEST_P(Sudo, ManyAtOnceAllEnd) {
  EXPECT_EQ(output_of("for i in $(seq 40); do sudo sh -c 'sleep 0.2; echo x' & done; wait"), [] {
    std::string all;
    for (int i = 0; i < 40; ++i) all += "x\n";
    return all;
  }());
}

}  // namespace
}  // namespace atl::agent
