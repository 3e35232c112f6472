#include "warden/service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/file.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

class WardenService : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
  }

  Client client() {
    auto connected = Client::connect(directories_.run());
    EXPECT_TRUE(connected.has_value());
    return std::move(*connected);
  }

  Directories directories_;
};

TEST_F(WardenService, ProbesUsable) {
  RunningWarden warden(directories_, 0);
  EXPECT_EQ(client().ask(simple_request(Operation::kProbe)).status, Status::kOk);
}

TEST_F(WardenService, AMessageOfAnotherVersionIsAnsweredByOurVersionAndNothingIsDone) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  for (size_t length : {sizeof(Request) - 40, sizeof(Request), sizeof(Request) + 40}) {
    Request request = launch_request(SandboxId::draw(), image);
    request.version = 9;
    std::string bytes(sizeof request + 40, 'x');
    std::memcpy(bytes.data(), &request, sizeof request);
    Client one = client();
    ASSERT_TRUE(one.send_bytes(bytes.substr(0, length)));
    auto answer = one.receive();
    ASSERT_TRUE(answer.has_value());
    ASSERT_GE(answer->size(), 6u);
    uint16_t version = 0;
    std::memcpy(&version, answer->data() + 4, sizeof version);
    EXPECT_EQ(version, spoken_version());
    EXPECT_FALSE(one.receive().has_value()) << "the connection is closed";
  }
  std::vector<std::string> ids;
  EXPECT_EQ(client().ask(simple_request(Operation::kList), &ids).status, Status::kOk);
  EXPECT_TRUE(ids.empty());
}

TEST_F(WardenService, ATakenIdIsRefusedAndTheIsolateGoesOn) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  Client one = client();
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(one.ask(launch_request(id, image)).status, Status::kOk);
  EXPECT_EQ(one.ask(launch_request(id, image)).status, Status::kExists);
  EXPECT_EQ(value_of(ask_probe(directories_.run(), id, "report"), "Pid"), "1");
}

TEST_F(WardenService, AnUnknownImageIsNamedAndLeavesNothing) {
  RunningWarden warden(directories_, 0);
  Client one = client();
  auto before = traces(directories_.run(), warden.pid());
  Reply reply = one.ask(launch_request(SandboxId::draw(), {}));
  EXPECT_EQ(reply.status, Status::kNoImage);
  EXPECT_EQ(reply.step, Step::kImage);
  EXPECT_EQ(settled_traces(directories_.run(), warden.pid(), before), before);
}

TEST_F(WardenService, AnImageThatOthersCanWriteIsRefused) {
  auto image = directories_.make_image(kPlainImage);
  std::string path = directories_.state() + "/images/" + to_hex(image) + ".erofs";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  RunningWarden warden(directories_, 0);
  Reply reply = client().ask(launch_request(SandboxId::draw(), image));
  EXPECT_EQ(reply.status, Status::kFailed);
  EXPECT_EQ(reply.step, Step::kImage);
  EXPECT_EQ(reply.system_errno, EPERM);
}

TEST_F(WardenService, RemovalIsRepeatableAndLeavesNothing) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  Client one = client();
  // The first launch mounts the image, which stays.
  SandboxId first = SandboxId::draw();
  ASSERT_EQ(one.ask(launch_request(first, image)).status, Status::kOk);
  ASSERT_EQ(one.ask(simple_request(Operation::kRemove, first)).status, Status::kOk);
  wait_until_childless(warden.pid());
  auto before = traces(directories_.run(), warden.pid());
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(one.ask(launch_request(id, image)).status, Status::kOk);
  EXPECT_NE(traces(directories_.run(), warden.pid()), before);
  EXPECT_EQ(one.ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
  EXPECT_EQ(settled_traces(directories_.run(), warden.pid(), before), before);
  EXPECT_EQ(one.ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
}

TEST_F(WardenService, ListsInOrderAfterAnId) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  Client one = client();
  std::vector<SandboxId> ids = {SandboxId::draw(), SandboxId::draw(), SandboxId::draw()};
  for (const SandboxId& id : ids) ASSERT_EQ(one.ask(launch_request(id, image)).status, Status::kOk);
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> all, rest;
  EXPECT_EQ(one.ask(simple_request(Operation::kList), &all).status, Status::kOk);
  EXPECT_EQ(all, (std::vector{ids[0].string(), ids[1].string(), ids[2].string()}));
  EXPECT_EQ(one.ask(simple_request(Operation::kList, ids[0]), &rest).status, Status::kOk);
  EXPECT_EQ(rest, (std::vector{ids[1].string(), ids[2].string()}));
}

std::string ranges_message(SandboxId id, std::initializer_list<linux::AddressRange> ranges) {
  Message message = {};
  message.request = simple_request(Operation::kRanges, id);
  message.ranges.count = ranges.size();
  std::copy(ranges.begin(), ranges.end(), message.ranges.list.begin());
  return std::string(reinterpret_cast<const char*>(&message), sizeof message);
}

Status status_of(const std::optional<std::string>& reply) {
  if (!reply) return Status::kRefused;
  auto parsed = parse_reply({reinterpret_cast<const unsigned char*>(reply->data()), reply->size()});
  return parsed ? parsed->reply.status : Status::kRefused;
}

TEST_F(WardenService, OpensRangesInANetwork) {
  constexpr linux::AddressRange kTen = {
      .prefix_bits = 8, .address_bytes = 4, .reserved = {}, .first = {10}};
  constexpr linux::AddressRange kSix = {
      .prefix_bits = 8, .address_bytes = 16, .reserved = {}, .first = {0xfd}};
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  Client one = client();
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(one.ask(launch_request(id, image)).status, Status::kOk);
  for (const std::string& message :
       {ranges_message(id, {kTen, kSix}), ranges_message(id, {}), ranges_message(id, {kSix})}) {
    ASSERT_TRUE(one.send_bytes(message));
    EXPECT_EQ(status_of(one.receive()), Status::kOk);
  }
  ASSERT_TRUE(one.send_bytes(ranges_message(SandboxId::draw(), {kTen})));
  EXPECT_EQ(status_of(one.receive()), Status::kFailed);
  EXPECT_EQ(one.ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
  linux::AddressRange bad = kTen;
  bad.prefix_bits = 33;
  ASSERT_TRUE(one.send_bytes(ranges_message(id, {bad})));
  EXPECT_FALSE(one.receive().has_value());
}

TEST_F(WardenService, AMalformedMessageEndsOnlyThatConnection) {
  RunningWarden warden(directories_, 0);
  Client good = client();
  Request request = simple_request(Operation::kProbe);
  std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
  std::string wrong_magic = bytes;
  wrong_magic[0] ^= 1;
  Request with_field = request;
  with_field.pids = 8;
  std::string unused_field(reinterpret_cast<const char*>(&with_field), sizeof with_field);
  for (const std::string& bad :
       {wrong_magic, unused_field, bytes + "x", bytes.substr(1), std::string("x")}) {
    Client one = client();
    ASSERT_TRUE(one.send_bytes(bad));
    EXPECT_FALSE(one.receive().has_value());
  }
  EXPECT_EQ(good.ask(request).status, Status::kOk);
}

TEST_F(WardenService, OnlyTheClientsUidIsHeard) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 12345);
  struct stat status;
  ASSERT_EQ(stat((directories_.run() + "/warden.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345u);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  Client root = client();  // root gets past the mode, so the peer's uid must decide
  root.send_bytes("x");
  EXPECT_FALSE(root.receive().has_value());
  pid_t child = fork();
  if (child == 0) {
    if (setuid(12345) != 0) _exit(2);
    auto allowed = Client::connect(directories_.run());
    if (!allowed) _exit(3);
    SandboxId id = SandboxId::draw();
    if (allowed->ask(launch_request(id, image)).status != Status::kOk) _exit(4);
    if (value_of(ask_probe(directories_.run(), id, "report"), "Pid") != "1") _exit(5);
    _exit(allowed->ask(simple_request(Operation::kRemove, id)).status == Status::kOk ? 0 : 6);
  }
  int code = 0;
  waitpid(child, &code, 0);
  EXPECT_EQ(WEXITSTATUS(code), 0);
}

TEST_F(WardenService, IsolatesOutliveAKilledWardenAndTheNextOneTakesThemOver) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  SandboxId old_one = SandboxId::draw(), new_one = SandboxId::draw();
  ASSERT_EQ(client().ask(launch_request(old_one, image)).status, Status::kOk);
  auto is_loop = [](const std::string& trace) { return trace.starts_with("loop "); };
  auto before = traces(directories_.run(), warden.pid());
  warden.kill_hard();
  EXPECT_EQ(ask_probe(directories_.run(), old_one, "fill /tmp/still 10"), "10 0");
  warden.start();
  Client one = client();
  std::vector<std::string> ids;
  one.ask(simple_request(Operation::kList), &ids);
  EXPECT_EQ(ids, std::vector{old_one.string()});
  ASSERT_EQ(one.ask(launch_request(new_one, image)).status, Status::kOk);
  EXPECT_EQ(ask_probe(directories_.run(), new_one, "fill /tmp/new 10"), "10 0");
  auto after = traces(directories_.run(), warden.pid());
  std::vector<std::string> loops_before, loops_after;
  std::copy_if(before.begin(), before.end(), std::back_inserter(loops_before), is_loop);
  std::copy_if(after.begin(), after.end(), std::back_inserter(loops_after), is_loop);
  // The pool, and the image where the kernel mounts no plain file.
  EXPECT_TRUE(loops_before.size() == 1 || loops_before.size() == 2) << loops_before.size();
  EXPECT_EQ(loops_after, loops_before);
  EXPECT_EQ(one.ask(simple_request(Operation::kRemove, old_one)).status, Status::kOk);
  EXPECT_EQ(one.ask(simple_request(Operation::kRemove, new_one)).status, Status::kOk);
  EXPECT_FALSE(ask_probe(directories_.run(), old_one, "report").starts_with("Name"));
}

TEST_F(WardenService, StopsOnRequestAndLeavesIsolatesRunning) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(client().ask(launch_request(id, image)).status, Status::kOk);
  EXPECT_EQ(warden.terminate(), 0);
  EXPECT_EQ(value_of(ask_probe(directories_.run(), id, "report"), "Pid"), "1");
  EXPECT_EQ(run_remove_all(directories_), 0);
  for (const std::string& trace : traces(directories_.run(), getpid())) {
    for (const char* kind : {"group", "uid range", "record", "socket", "loop"})
      EXPECT_FALSE(trace.starts_with(kind)) << trace;
  }
}

TEST_F(WardenService, ASecondWardenOnTheSameDirectoriesRefuses) {
  RunningWarden warden(directories_, 0);
  EXPECT_EQ(run_remove_all(directories_), 1) << "remove-all must not work beside a warden";
  EXPECT_EQ(client().ask(simple_request(Operation::kProbe)).status, Status::kOk);
}

TEST_F(WardenService, TwoAtollsShareNoUids) {
  Directories other;
  auto image = directories_.make_image(kPlainImage), other_image = other.make_image(kPlainImage);
  RunningWarden warden(directories_, 0), other_warden(other, 0);
  SandboxId id = SandboxId::draw();  // even the same id
  auto other_client = Client::connect(other.run());
  ASSERT_TRUE(other_client.has_value());
  ASSERT_EQ(client().ask(launch_request(id, image)).status, Status::kOk);
  ASSERT_EQ(other_client->ask(launch_request(id, other_image)).status, Status::kOk);
  std::string map = value_of(ask_probe(directories_.run(), id, "report"), "uid_map");
  std::string other_map = value_of(ask_probe(other.run(), id, "report"), "uid_map");
  EXPECT_NE(map, "absent");
  EXPECT_NE(map, other_map);
  ASSERT_EQ(client().ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
  EXPECT_EQ(value_of(ask_probe(other.run(), id, "report"), "Pid"), "1");
}

TEST_F(WardenService, AKilledHelperIsReportedAndCleanedUpAfter) {
  auto image = directories_.make_image(kPlainImage);
  std::string crash = directories_.run() + "/crash";
  ASSERT_EQ(mkdir(crash.c_str(), 0700), 0);
  RunningWarden warden(directories_, 0);
  Client one = client();
  ASSERT_EQ(one.ask(launch_request(SandboxId::draw(), {})).status, Status::kNoImage);
  wait_until_childless(warden.pid());
  // The image may be mounted meanwhile, which stays.
  auto is_mounts = [](const std::string& trace) { return trace.starts_with("mounts"); };
  auto before = traces(directories_.run(), warden.pid());
  std::erase_if(before, is_mounts);
  for (Step step : {Step::kRecord, Step::kClone, Step::kLayer, Step::kIdmap, Step::kReceipt}) {
    std::string point = crash + "/atoll-warden.launch." + std::string(step_name(step));
    ASSERT_TRUE(replace_file(point, "", 0600).ok());
    Reply reply = one.ask(launch_request(SandboxId::draw(), image));
    EXPECT_EQ(reply.status, Status::kFailed) << step_name(step);
    EXPECT_EQ(reply.step, Step::kHelper) << step_name(step);
    EXPECT_NE(access(point.c_str(), F_OK), 0) << "it did not come to " << step_name(step);
    std::vector<std::string> left;
    (void)eventually([&] {
      left = traces(directories_.run(), warden.pid());
      std::erase_if(left, is_mounts);
      return left == before;
    });
    EXPECT_EQ(left, before) << step_name(step);
  }
}

TEST_F(WardenService, WhatALostRunDirectoryLeftIsRemovedAtStart) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(client().ask(launch_request(id, image)).status, Status::kOk);
  warden.kill_hard();
  std::filesystem::remove_all(directories_.run() + "/isolates");
  warden.start();
  for (const std::string& trace : traces(directories_.run(), warden.pid())) {
    for (const char* kind : {"group", "uid range", "record", "socket", "subvolume"})
      EXPECT_FALSE(trace.starts_with(kind)) << trace;
  }
}

TEST_F(WardenService, DirectoriesThatOthersCanChangeAreRefused) {
  ASSERT_EQ(chmod(directories_.state().c_str(), 0777), 0);
  EXPECT_EQ(run_remove_all(directories_), 1);
  ASSERT_EQ(chmod(directories_.state().c_str(), 0755), 0);
  ASSERT_EQ(chown(directories_.run().c_str(), 12345, 0), 0);
  EXPECT_EQ(run_remove_all(directories_), 1);
  ASSERT_EQ(chown(directories_.run().c_str(), 0, 0), 0);
  EXPECT_EQ(run_remove_all(directories_), 0);
}

TEST_F(WardenService, TheSpaceOfARemovedLayerComesBackWithinSeconds) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  std::string pool =
      "/proc/" + std::to_string(warden.pid()) + "/root" + directories_.run() + "/pool";
  auto free_bytes = [&pool] {
    struct statvfs status = {};
    EXPECT_EQ(statvfs(pool.c_str(), &status), 0);
    return static_cast<int64_t>(status.f_bfree * status.f_frsize);
  };
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(client().ask(launch_request(id, image)).status, Status::kOk);
  int64_t before = free_bytes();
  ASSERT_EQ(ask_probe(directories_.run(), id, "fill /tmp/big 6000000"), "6000000 0");
  Fd opened(open(pool.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(syncfs(opened.get()), 0);  // blocks are taken when they are written
  opened.reset();
  EXPECT_LT(free_bytes(), before - 5'000'000);
  ASSERT_EQ(client().ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
  EXPECT_TRUE(eventually([&] { return free_bytes() >= before - 500'000; })) << free_bytes();
}

TEST_F(WardenService, TakesManyRequestsAtOnce) {
  auto image = directories_.make_image(kPlainImage);
  RunningWarden warden(directories_, 0);
  Client one = client();
  constexpr int kCount = 30;
  std::vector<SandboxId> ids;
  for (int i = 0; i < kCount; ++i) {
    ids.push_back(SandboxId::draw());
    Request request = launch_request(ids.back(), image);
    ASSERT_TRUE(one.send_bytes({reinterpret_cast<const char*>(&request), sizeof request}));
  }
  for (int i = 0; i < kCount; ++i) {
    auto message = one.receive();
    ASSERT_TRUE(message.has_value());
    auto parsed =
        parse_reply({reinterpret_cast<const unsigned char*>(message->data()), message->size()});
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->reply.status, Status::kOk);
  }
  for (const SandboxId& id : ids)
    EXPECT_EQ(value_of(ask_probe(directories_.run(), id, "report"), "Pid"), "1");
}

}  // namespace
}  // namespace atl::warden
