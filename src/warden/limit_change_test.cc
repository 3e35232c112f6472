// Other limits for an isolate that runs, on the real kernel.
#include <gtest/gtest.h>

#include "base/eventually.h"
#include "linux/cgroup_tree.h"
#include "linux/resource_usage.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

constexpr uint64_t kMiB = 1 << 20;

class LimitChange : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    auto image = directories_.make_image(kPlainImage);
    warden_.emplace(directories_, 0);
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
    Request launch = launch_request(id_, image);
    launch.memory_bytes = 64 * kMiB;
    launch.pids = 20;
    Reply reply = client_->ask(launch);
    ASSERT_EQ(reply.status, Status::kOk) << step_name(reply.step) << " " << reply.system_errno;
    request_ = simple_request(Operation::kLimits, id_);
    request_.cpu_millis = launch.cpu_millis;
    request_.memory_bytes = launch.memory_bytes;
    request_.pids = launch.pids;
    request_.disk_bytes = launch.disk_bytes;
    taken_ = ask("spawner") == "none" ? 1 : 2;
  }
  void TearDown() override {
    if (!warden_) return;
    EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id_)).status, Status::kOk);
    wait_until_childless(warden_->pid());
    for (const std::string& trace : traces(directories_.run(), warden_->pid()))
      EXPECT_FALSE(trace.starts_with("group") || trace.starts_with("record")) << trace;
  }
  std::string ask(const std::string& question) {
    return ask_probe(directories_.run(), id_, question);
  }
  std::string forks() { return ask("limited forks 100"); }
  std::string hog(uint64_t bytes) { return ask("limited hog " + std::to_string(bytes)); }
  std::string free_pids(int pids) const { return std::to_string(pids - taken_); }
  std::string receipt() {
    Request request = simple_request(Operation::kReceipt, id_);
    EXPECT_TRUE(client_->send_bytes({reinterpret_cast<const char*>(&request), sizeof request}));
    return client_->receive().value_or("");
  }
  void expect_in_receipt(const std::string& name, uint64_t value) {
    std::string part = "{\"name\":\"limits." + name + "\",\"outside\":\"" + std::to_string(value);
    std::string text = receipt();
    EXPECT_NE(text.find(part + "\""), std::string::npos) << part << " is not in " << text;
  }

  Directories directories_;
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
  SandboxId id_ = SandboxId::draw();
  Request request_ = {};
  int taken_ = 0;
};

TEST_F(LimitChange, MoreAndLessHoldAndAreInTheReceipt) {
  EXPECT_EQ(hog(80 * kMiB), "signal 9");
  request_.memory_bytes = 128 * kMiB;
  request_.pids = 30;
  request_.cpu_millis = 700;
  request_.disk_bytes = 16 * kMiB;
  ASSERT_EQ(client_->ask(request_).status, Status::kOk);
  EXPECT_EQ(hog(100 * kMiB), "held");
  EXPECT_EQ(forks(), free_pids(30));
  EXPECT_EQ(ask("fill /tmp/big 12582912"), "12582912 0");
  expect_in_receipt("memory_bytes", 128 * kMiB);
  expect_in_receipt("cpu_millis", 700);
  expect_in_receipt("pids", 30);
  expect_in_receipt("disk_bytes", 16 * kMiB);
  request_.memory_bytes = 32 * kMiB;
  request_.pids = 12;
  request_.disk_bytes = 8 * kMiB;  // less than it has: nothing can be added
  ASSERT_EQ(client_->ask(request_).status, Status::kOk);
  EXPECT_EQ(hog(20 * kMiB), "held");
  EXPECT_EQ(hog(40 * kMiB), "signal 9");
  EXPECT_EQ(forks(), free_pids(12));
  EXPECT_NE(ask("fill /tmp/more 4194304"), "4194304 0");
  expect_in_receipt("memory_bytes", 32 * kMiB);
  expect_in_receipt("disk_bytes", 8 * kMiB);
}

TEST_F(LimitChange, LessMemoryThanIsInUseIsRefusedAndAllIsAsBefore) {
  uint64_t disk_bytes = request_.disk_bytes;
  EXPECT_EQ(ask("limited hold " + std::to_string(40 * kMiB)), "held");
  request_.memory_bytes = 20 * kMiB;
  request_.pids = 12;
  request_.cpu_millis = 700;
  request_.disk_bytes = disk_bytes + kMiB;
  EXPECT_EQ(client_->ask(request_).status, Status::kInUse);
  expect_in_receipt("memory_bytes", 64 * kMiB);
  expect_in_receipt("pids", 20);
  expect_in_receipt("cpu_millis", 500);
  expect_in_receipt("disk_bytes", disk_bytes);
  EXPECT_NE(ask("counters").find("oom_kill 0\n"), std::string::npos) << "nothing was killed";
  request_.memory_bytes = 56 * kMiB;
  EXPECT_EQ(client_->ask(request_).status, Status::kOk);
}

TEST_F(LimitChange, CacheIsNotInUse) {
  request_.disk_bytes = 64 * kMiB;
  ASSERT_EQ(client_->ask(request_).status, Status::kOk);
  EXPECT_EQ(ask("limited fill /tmp/big 41943040"), "41943040 0");
  request_.memory_bytes = 20 * kMiB;
  EXPECT_EQ(client_->ask(request_).status, Status::kOk);
}

TEST_F(LimitChange, RateOfTheDiskIsSetOrRefused) {
  auto tree = linux::read_cgroups();
  ASSERT_TRUE(tree.ok());
  request_.disk_bytes_per_second = kMinDiskBytesPerSecond;
  request_.pids = 12;
  Reply reply = client_->ask(request_);
  if (reply.status == Status::kRefused) {
    printf("not tested: this host cannot limit the rate of a disk\n");
    EXPECT_EQ(reply.refusal, Refusal::kDiskRate);
    EXPECT_FALSE(tree->io_in_v2 && tree->in_v2[0]);
    EXPECT_EQ(forks(), free_pids(20)) << "nothing was changed";
    return;
  }
  ASSERT_EQ(reply.status, Status::kOk) << reply.system_errno;
  request_.disk_bytes_per_second = 0;
  EXPECT_EQ(client_->ask(request_).status, Status::kOk);
}

TEST_F(LimitChange, WhatIsUsedIsToldFromOutside) {
  linux::ResourceUsage before = {};
  // Its processes are charged for what they touch, when they have had a processor.
  EXPECT_TRUE(eventually([&] {
    before = usage_of(*client_, id_);
    return before.memory_bytes > 0;
  }));
  EXPECT_LT(before.memory_bytes, 64 * kMiB);
  EXPECT_LE(before.cache_bytes, before.memory_bytes);
  EXPECT_LT(before.disk_bytes, request_.disk_bytes);
  EXPECT_GT(before.memory_bytes, 0u);
  EXPECT_GT(before.cpu_us, 0u);
  Reply nobody = client_->ask(simple_request(Operation::kMeter, SandboxId::draw()));
  EXPECT_EQ(nobody.status, Status::kFailed);
  EXPECT_EQ(nobody.system_errno, ENOENT);
}

TEST_F(LimitChange, OfNobodyIsAnError) {
  Request nobody = simple_request(Operation::kLimits, SandboxId::draw());
  nobody.cpu_millis = request_.cpu_millis;
  nobody.memory_bytes = request_.memory_bytes;
  nobody.pids = request_.pids;
  nobody.disk_bytes = request_.disk_bytes;
  Reply reply = client_->ask(nobody);
  EXPECT_EQ(reply.status, Status::kFailed);
  EXPECT_EQ(reply.system_errno, ENOENT);
}

TEST_F(LimitChange, EveryFieldIsChecked) {
  auto accepts = [](const Request& request) {
    return parse_request({reinterpret_cast<const unsigned char*>(&request), sizeof request}).ok();
  };
  EXPECT_TRUE(accepts(request_));
  for (auto spoil :
       {+[](Request& r) { r.cpu_millis = kMaxCpuMillis + 1; },
        +[](Request& r) { r.memory_bytes = kMinMemoryBytes - 1; }, +[](Request& r) { r.pids = 0; },
        +[](Request& r) { r.disk_bytes = 0; }, +[](Request& r) { r.disk_bytes_per_second = 1; },
        +[](Request& r) { r.open_files = kMinOpenFiles; },
        +[](Request& r) { r.on_oom = OnOom::kEndSandbox; }, +[](Request& r) { r.required = 1; },
        +[](Request& r) { r.image[0] = 1; }, +[](Request& r) { r.nonce[0] = 1; },
        +[](Request& r) { r.reserved[0] = 1; }, +[](Request& r) { r.sandbox_id = {}; }}) {
    Request spoiled = request_;
    spoil(spoiled);
    EXPECT_FALSE(accepts(spoiled));
  }
}

}  // namespace
}  // namespace atl::warden
