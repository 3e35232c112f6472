// Programs that begin from what another one has come to.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "agent/channel_fixture_test.h"
#include "agent/imprint.h"
#include "agent/imprint_protocol.h"
#include "base/file.h"
#include "linux/sealed_memory.h"

namespace atl::agent {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

// Waits as the runtimes do: at a read of descriptor 5, which gives it the rest of its program.
constexpr std::string_view kWait =
    "import os, sys, json, signal\n"
    "signal.signal(signal.SIGUSR1, lambda *_: print('caught', flush=True))\n"
    "big = list(range(200000))\n"
    "os.write(5, b'ready\\n')\n"
    "exec(os.read(5, 65536).decode())\n";

class AgentImprint : public FileTest {
 protected:
  static constexpr uint32_t kZygote = 7;

  void SetUp() override {
    if (access(kPython, X_OK) != 0) GTEST_SKIP() << "there is no " << kPython;
    if (syscall(kMsealCall, 0, 0, 0) != 0) GTEST_SKIP() << "the kernel has no mseal (Linux 6.10)";
    FileTest::SetUp();
  }

  static Start python(std::string_view script) {
    Start start = {.arguments = {kPython, "-c", std::string(script)},
                   .environment = {"PATH=/usr/bin:/bin"},
                   .directory = "/"};
    start.output_limit_bytes = 8 << 20;
    start.control = ControlMode::kWaits;
    return start;
  }

  // What the channel of the imprint brings, whole.
  std::string take(std::string_view script) {
    daemon_.start(kZygote, python(script));
    uint32_t control = 0;
    EXPECT_TRUE(daemon_.run_until([&] { return daemon_.record(kZygote).pid.has_value(); }));
    control = channels_.open_control({kZygote, std::nullopt});
    EXPECT_TRUE(daemon_.run_until([&] { return channels_.at(control).bytes == "ready\n"; }));
    uint32_t channel = channels_.open_imprint(kZygote);
    EXPECT_TRUE(channels_.wait_closed(channel));
    EXPECT_EQ(channels_.at(channel).close->system_errno, 0)
        << channels_.at(channel).close->operation;
    return channels_.at(channel).bytes;
  }

  void begin(uint32_t exec, int file, std::string_view program) {
    daemon_.send_raw(encode_imprint(exec), file);
    daemon_.start(exec, python("ignored"));
    ASSERT_TRUE(daemon_.run_until(
        [&] { return daemon_.record(exec).pid.has_value() || daemon_.record(exec).ended(); }));
    if (daemon_.record(exec).ended()) return;
    uint32_t channel = channels_.open_control({exec, Beginning{.output_limit_bytes = 8 << 20}});
    channels_.send(channel, program);
  }

  std::string run(uint32_t exec, int file, std::string_view program) {
    begin(exec, file, program);
    const Record& done = daemon_.finish(exec);
    if (done.failed) return "failed: " + done.failed->operation;
    EXPECT_EQ(done.err, "");
    return done.out + "status " + std::to_string(done.exit->status);
  }

  Fd file_of(std::string_view bytes) {
    auto file = linux::make_sealed_memory("imprint", bytes);
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
};
ATOLL_FILE_TESTS(AgentImprint);

TEST_P(AgentImprint, ProgramsBeginWhereAnotherWaited) {
  Fd file = file_of(take(kWait));
  EXPECT_EQ(run(8, file.get(), "print(len(big), json.dumps([1]))"), "200000 [1]\nstatus 0");
  EXPECT_EQ(run(9, file.get(), "big.clear(); print(len(big)); sys.exit(3)"), "0\nstatus 3");
  EXPECT_EQ(run(10, file.get(), "print(len(big))"), "200000\nstatus 0") << "as if none had run";
}

TEST_P(AgentImprint, AProgramIsWholeAfterwards) {
  Fd file = file_of(take(kWait));
  // Its number, a stack that grows, memory that is given back and taken again, threads, a child,
  // signals, and a list that another had made and that grows in place.
  EXPECT_EQ(
      run(8, file.get(),
          "import threading, subprocess, time\n"
          "sys.setrecursionlimit(20000)\n"
          "def deep(n): return n and 1 + deep(n - 1)\n"
          "print(deep(15000))\n"
          "for i in range(5): del (lambda: [bytearray(3000000) for _ in range(9)])()[:]\n"
          "big.extend(range(5000000)); print(len(big))\n"
          "seen = []\n"
          "threads = [threading.Thread(target=lambda: seen.append(threading.get_native_id()))\n"
          "           for _ in range(9)]\n"
          "for thread in threads: thread.start()\n"
          "for thread in threads: thread.join()\n"
          "print(len(seen), threading.get_native_id() == os.getpid())\n"
          "print(subprocess.run(['echo', 'child'], stdout=subprocess.PIPE).stdout)\n"
          "os.kill(os.getpid(), signal.SIGUSR1)\n"
          "try: os.kill(os.getpid(), signal.SIGINT); time.sleep(1)\n"
          "except KeyboardInterrupt: print('interrupted')\n"),
      "15000\n5200000\n9 True\nb'child\\n'\ncaught\ninterrupted\nstatus 0");
}

TEST_P(AgentImprint, ItStandsBehindTheWallsOfAnyProgram) {
  constexpr std::string_view kLook =
      "for line in open('/proc/self/status'):\n"
      "  name = line.split(':')[0]\n"
      "  if name[:3] in ('Cap', 'Sec', 'Uid', 'Gid', 'Gro', 'NoN', 'Sig', 'Shd', 'Uma'):\n"
      "    if name != 'SigQ': print(line, end='')\n"
      "print(sorted(os.listdir('/proc/self/fd')), os.getcwd())\n"
      "print(os.stat('/proc/self').st_uid, open('/proc/self/oom_score_adj').read())\n"
      "import resource\n"
      "print([resource.getrlimit(i) for i in range(16)])\n";
  Fd file = file_of(take(kWait));
  std::string copied = run(8, file.get(), kLook);
  daemon_.start(9, python(kWait));
  ASSERT_TRUE(daemon_.run_until([&] { return daemon_.record(9).pid.has_value(); }));
  uint32_t channel = channels_.open_control({9, Beginning{.output_limit_bytes = 8 << 20}});
  channels_.send(channel, kLook);
  const Record& cold = daemon_.finish(9);
  EXPECT_EQ(copied, cold.out + "status 0");
  EXPECT_NE(copied.find("Seccomp:\t2\nSeccomp_filters:\t1\n"), copied.npos) << copied;
}

TEST_P(AgentImprint, WhatCannotBeCopiedSaysWhy) {
  EXPECT_EQ(take("import os, threading\n"
                 "threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()\n"
                 "os.write(5, b'ready\\n')\n"
                 "os.read(5, 9)"),
            "there are 2 threads");
  daemon_.finish(kZygote);
  daemon_.forget(kZygote);
  EXPECT_EQ(take("import os\nkept = open('/etc/passwd')\nos.write(5, b'ready\\n')\nos.read(5, 9)"),
            "a module keeps a descriptor open");
  daemon_.finish(kZygote);
  daemon_.forget(kZygote);
  EXPECT_EQ(take("import os, mmap\nkept = mmap.mmap(-1, 4096)\nos.write(5, b'ready\\n')\n"
                 "os.read(5, 9)"),
            "it shares memory");
}

TEST_P(AgentImprint, MemoryThatWouldNotBeTheSameSaysWhy) {
  std::string map = "import os, ctypes\nmap = ctypes.CDLL(None).mmap\n";
  std::string wait = "os.write(5, b'ready\\n')\nos.read(5, 9)";
  EXPECT_EQ(take(map + "map(None, 1 << 20, 0, 0x22, -1, 0)\n" + wait),
            "it had threads, or reserves memory");
  daemon_.finish(kZygote);
  daemon_.forget(kZygote);
  put("allocator", std::string(300'000, 'x') + "<jemalloc>: error\n");
  std::string open = "file = os.open('" + at("allocator") + "', 0)\n";
  EXPECT_EQ(take(map + open + "map(None, 300032, 1, 2, file, 0)\nos.close(file)\n" + wait),
            "it has an allocator of its own: " + at("allocator"));
}

TEST_P(AgentImprint, OnlyAProgramThatWaitsHasOne) {
  uint32_t unknown = channels_.open_imprint(99);
  ASSERT_TRUE(channels_.wait_closed(unknown));
  EXPECT_EQ(channels_.at(unknown).close->system_errno, ESRCH);
}

// Whatever the bytes are, at worst a start fails.
TEST_P(AgentImprint, BytesThatAreNoneStartNothing) {
  std::string good = take(kWait);
  EXPECT_EQ(run(8, file_of("no imprint").get(), ""), "failed: set memory marks");
  std::string short_one = good.substr(0, sizeof(ImprintHeader) + 100);
  EXPECT_EQ(run(9, file_of(short_one).get(), ""), "failed: begin from an imprint");
  ImprintHeader header;
  std::memcpy(&header, good.data(), sizeof header);
  std::string other = good;
  header.magic = 0;
  std::memcpy(other.data(), &header, sizeof header);
  EXPECT_EQ(run(10, file_of(other).get(), ""), "failed: begin from an imprint");
  ImprintSegment segment;
  uint32_t exec = 11;
  for (uint64_t ImprintSegment::*field :
       {&ImprintSegment::start, &ImprintSegment::end, &ImprintSegment::offset}) {
    other = good;
    std::memcpy(&segment, other.data() + sizeof header, sizeof segment);
    segment.*field = 0xfffffffffffff123;
    std::memcpy(other.data() + sizeof header, &segment, sizeof segment);
    EXPECT_EQ(run(exec++, file_of(other).get(), ""), "failed: begin from an imprint");
  }
  EXPECT_EQ(run(exec, file_of(good).get(), "print(1)"), "1\nstatus 0");
}

TEST_P(AgentImprint, AnImprintIsForOneStartAndItsNumber) {
  Fd file = file_of(take(kWait));
  daemon_.send_raw(encode_imprint(8), file.get());
  Start plain = shell("echo plain");
  daemon_.start(9, plain);
  EXPECT_EQ(daemon_.finish(9).out, "plain\n");
  daemon_.start(8, plain);
  EXPECT_EQ(daemon_.finish(8).out, "plain\n");
}

TEST_P(AgentImprint, AFrameWithoutAFileBreaksTheProtocol) {
  daemon_.send_raw(encode_imprint(8));
  EXPECT_TRUE(daemon_.is_dropped());
}

}  // namespace
}  // namespace atl::agent
