// File operations among programs and names that mean no good, in a sandbox with a small root of its
// own.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/channel_fixture_test.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kParents = bit(FileFlag::kParents), kReplace = bit(FileFlag::kReplace),
                   kRecursive = bit(FileFlag::kRecursive);

class HostileFiles : public FileTest {
 protected:
  HostileFiles() : FileTest({.root_bytes = 24 << 20}) {}
};
ATOLL_FILE_TESTS(HostileFiles);

TEST_P(HostileFiles, RemoveManagesDeepAndWideTrees) {
  // From the innermost outwards, so that no call is made in the depth, where each costs more.
  std::string script =
      "import os\n"
      "os.chdir('" +
      directory_ +
      "'); os.mkdir('deep')\n"
      "for i in range(10000): os.mkdir('n'); os.rename('deep', 'n/d'); os.rename('n', 'deep')\n"
      "for i in range(300): os.makedirs('wide/%d/sub' % i)\n";
  ASSERT_EQ(run("python3 -c \"" + script + "\"").exit->status, 0);
  EXPECT_EQ(ask(FileOperation::kRemove, "deep", kRecursive).error(), 0);
  EXPECT_EQ(ask(FileOperation::kRemove, "wide", kRecursive).error(), 0);
  EXPECT_EQ(tree(), std::vector<std::string>{});
}

TEST_P(HostileFiles, StrangeNamesAreNames) {
  for (const std::string& name :
       {std::string("new\nline"), std::string("\xff\xfe"), std::string("a b\t\x01"),
        std::string(255, 'n'), std::string("-rf"), std::string("...")}) {
    ASSERT_EQ(channels_.write(at(name), "x").error(), 0) << name;
    EXPECT_EQ(ask(FileOperation::kStat, name).entries.at(0).path, at(name));
    EXPECT_EQ(ask(FileOperation::kRemove, name).error(), 0) << name;
  }
  EXPECT_EQ(channels_.write(at(std::string(256, 'n')), "x").error(), ENAMETOOLONG);
  std::string longest = directory_;
  while (longest.size() + 2 <= kMaxPathBytes) longest += "/d";
  EXPECT_EQ(channels_.run(file_request(FileOperation::kStat, longest)).error(), ENOENT);
  FileRequest parents;
  parents.flags = kParents;
  EXPECT_EQ(channels_.write(longest, "x", parents).error(), 0);
  EXPECT_EQ(channels_.run(file_request(FileOperation::kStat, longest)).error(), 0);
  EXPECT_EQ(ask(FileOperation::kRemove, "d", kRecursive).error(), 0);
  EXPECT_EQ(tree(), std::vector<std::string>{});
}

TEST_P(HostileFiles, AFullDiskLeavesNothingHalfWritten) {
  std::string bytes(32 << 20, 'f');
  FileRequest request;
  request.flags = kParents;
  EXPECT_EQ(channels_.write(at("a/b/big"), bytes, request).error(), ENOSPC);
  EXPECT_EQ(tree(), std::vector<std::string>{});
  put("old", "kept", 0666);
  request.flags = kReplace;
  EXPECT_EQ(channels_.write(at("old"), bytes, request).error(), ENOSPC);
  EXPECT_EQ(get("old"), "kept");
  EXPECT_EQ(tree(), std::vector<std::string>{"old"});
  // And all of it is free again.
  EXPECT_EQ(channels_.write(at("new"), std::string(16 << 20, 'g')).error(), 0);
}

// Whatever the names lead to in the moment of use, what belongs to root stays as it is.
TEST_P(HostileFiles, SwappedLinksLeadNobodyToOthersFiles) {
  ASSERT_EQ(
      run("mkdir /etc && echo secret >/etc/canary && chmod 755 /etc && echo x >/etc/other", "root")
          .exit->status,
      0);
  std::string swap =
      "import os\n"
      "d = '" +
      directory_ +
      "'; os.makedirs(d + '/real/in'); os.symlink('/etc', d + '/link')\n"
      "os.mkdir(d + '/a')\n"
      "while True:\n"
      "  for source in ('real', 'link'):\n"
      "    try: os.rename(d + '/a', d + '/was'); os.rename(d + '/' + source, d + '/a')\n"
      "    except OSError: pass\n"
      "    try: os.rename(d + '/a', d + '/' + source)\n"
      "    except OSError: pass\n"
      "    try: os.rename(d + '/was', d + '/a')\n"
      "    except OSError: pass\n";
  daemon_.start(100, shell("exec python3 -c \"" + swap + "\""));
  ASSERT_TRUE(daemon_.run_until([&] { return fs::exists(outside("a")); }));
  FileEntry planted;
  planted.path = "a/canary";
  planted.size = 4;
  std::string archive =
      encode_record(planted) + encode_record(RecordType::kBytes, "evil") + encode_done();
  for (int i = 0; i < (GetParam() == Starter::kAgent ? 500 : 50); ++i) {
    FileRequest request;
    request.flags = kReplace;
    channels_.write(at("a/canary"), "evil", request);
    channels_.run(file_request(FileOperation::kRemove, at("a"), kRecursive));
    request = file_request(FileOperation::kMove, at("a/canary"), kReplace);
    request.target = at("a/other");
    channels_.run(request);
    request = file_request(FileOperation::kUnpack, directory_);
    channels_.run(request, archive);
  }
  daemon_.send_raw(encode_signal(100, SIGKILL));
  daemon_.finish(100);
  EXPECT_EQ(run("cat /etc/canary /etc/other; ls -A /etc; stat -c %a /etc", "root").out,
            "secret\nx\ncanary\nother\n755\n");
}

TEST_P(HostileFiles, AKilledWorkerIsToldAndLeavesNothing) {
  uint32_t channel = channels_.open(file_request(FileOperation::kWrite, at("new")));
  channels_.send(channel, encode_record(RecordType::kBytes, std::string(100'000, 'x')));
  // Only the workers of the sandbox are in leaves with such numbers. It can be killed as soon as it
  // has become the user.
  Record killed =
      run("for i in $(seq 500); do for p in /proc/[0-9]*; do grep -q '/1000000[0-9]*$' $p/cgroup "
          "&& kill -9 ${p#/proc/} && echo killed && exit; done; sleep 0.01; done 2>/dev/null");
  EXPECT_EQ(killed.out, "killed\n");
  ASSERT_TRUE(channels_.wait_closed(channel));
  EXPECT_EQ(channels_.at(channel).close->system_errno, EIO);
  EXPECT_EQ(read_answer(channels_.at(channel)).error(), -1);
  EXPECT_EQ(tree(), std::vector<std::string>{});
}

TEST_P(HostileFiles, AWorkerHasTheWallsOfAProgram) {
  FileRequest request = file_request(FileOperation::kWatch, directory_);
  uint32_t channel = channels_.open(request);
  ASSERT_TRUE(daemon_.run_until([&] { return read_answer(channels_.at(channel)).ready; }));
  std::string find =
      "for p in /proc/[0-9]*; do grep -q '/1000000[0-9]*$' $p/cgroup && "
      "echo ${p#/proc/}; done 2>/dev/null";
  std::string pid = run(find).out;
  ASSERT_FALSE(pid.empty());
  pid.pop_back();
  std::string show =
      "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Seccomp_filters):' /proc/";
  EXPECT_EQ(run(show + pid + "/status").out, run(show + "self/status").out);
  EXPECT_EQ(run("cat /proc/" + pid + "/oom_score_adj").out, "500\n");
  // Its memory is a copy of the agent's.
  EXPECT_NE(run("cat /proc/" + pid + "/environ").exit->status, 0);
  EXPECT_NE(run("readlink /proc/" + pid + "/fd/0", "root").exit->status, 0);
  channels_.give_up(channel);
  EXPECT_TRUE(channels_.wait_closed(channel));
}

TEST_P(HostileFiles, LargeDirectoriesArePaged) {
  ASSERT_EQ(run("cd " + directory_ + " && seq -f %05g 20000 | xargs touch").exit->status, 0);
  FileRequest request = file_request(FileOperation::kList, directory_);
  request.limit = kMaxListEntries;
  FileAnswer first = channels_.run(request);
  ASSERT_EQ(first.entries.size(), kMaxListEntries);
  EXPECT_EQ(first.entries.front().path, at("00001"));
  EXPECT_EQ(first.entries.back().path, at("10000"));
  request.cursor = first.entries.back().path;
  FileAnswer second = channels_.run(request);
  ASSERT_EQ(second.entries.size(), kMaxListEntries);
  EXPECT_EQ(second.entries.back().path, at("20000"));
  request.cursor = second.entries.back().path;
  EXPECT_EQ(channels_.run(request).entries.size(), 0u);
}

}  // namespace
}  // namespace atl::agent
