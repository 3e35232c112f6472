// Snapshots of layers, on the real kernel.
#include <gtest/gtest.h>

#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

constexpr uint64_t kMiB = 1 << 20;

void set_snapshot(Request& request, const SnapshotId& id) {
  id.view().copy(request.snapshot_id.data(), id.view().size());
}

class WardenSnapshots : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    image_ = directories_.make_image(kPlainImage);
    warden_.emplace(directories_, 0);
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
    ASSERT_EQ(launch(id_).status, Status::kOk);
  }
  void TearDown() override {
    if (!warden_) return;
    for (const SandboxId& id : launched_)
      EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id)).status, Status::kOk);
    for (const std::string& text : list()) EXPECT_EQ(remove(*SnapshotId::parse(text)), Status::kOk);
    wait_until_childless(warden_->pid());
    EXPECT_TRUE(list().empty());
  }
  Reply launch(const SandboxId& id, const SnapshotId* snapshot = nullptr, uint64_t inherited = 0) {
    Request request = launch_request(id, image_);
    request.disk_bytes = 64 * kMiB;
    request.inherited_bytes = inherited;
    if (snapshot != nullptr) set_snapshot(request, *snapshot);
    launched_.push_back(id);
    return client_->ask(request);
  }
  Reply cut(const SnapshotId& snapshot, uint64_t inherited = 0) {
    Request request = simple_request(Operation::kSnapshot, id_);
    set_snapshot(request, snapshot);
    request.inherited_bytes = inherited;
    return client_->ask(request);
  }
  Status remove(const SnapshotId& snapshot) {
    Request request = simple_request(Operation::kRemoveSnapshot);
    set_snapshot(request, snapshot);
    return client_->ask(request).status;
  }
  std::vector<std::string> list() {
    std::vector<std::string> ids;
    EXPECT_EQ(client_->ask(simple_request(Operation::kListSnapshots), &ids).status, Status::kOk);
    return ids;
  }

  Directories directories_;
  std::array<unsigned char, Digest::kBytes> image_ = {};
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
  SandboxId id_ = SandboxId::draw();
  std::vector<SandboxId> launched_;
};

TEST_F(WardenSnapshots, OutliveTheirIsolateAndTheWarden) {
  SnapshotId snapshot = SnapshotId::draw();
  Reply reply = cut(snapshot);
  ASSERT_EQ(reply.status, Status::kOk) << reply.system_errno;
  EXPECT_GT(reply.held_bytes, 0u);
  EXPECT_GT(reply.frozen_us, 0u);
  EXPECT_NE(cut(snapshot).status, Status::kOk) << "the id is taken";
  EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id_)).status, Status::kOk);
  warden_->kill_hard();
  warden_->start();
  client_ = Client::connect(directories_.run());
  EXPECT_EQ(list(), std::vector<std::string>{snapshot.string()});
  EXPECT_EQ(launch(SandboxId::draw(), &snapshot, reply.held_bytes).status, Status::kOk);
  EXPECT_EQ(remove(snapshot), Status::kOk) << "also while an isolate runs that came from it";
  EXPECT_EQ(remove(snapshot), Status::kOk) << "nothing to remove is a success";
}

TEST_F(WardenSnapshots, OneThatIsNotThereLeavesNothing) {
  SnapshotId snapshot = SnapshotId::draw();
  EXPECT_EQ(launch(SandboxId::draw(), &snapshot).status, Status::kNoSnapshot);
}

TEST_F(WardenSnapshots, AnIsolateThatWasFrozenStaysSo) {
  EXPECT_EQ(client_->ask(simple_request(Operation::kFreeze, id_)).status, Status::kOk);
  EXPECT_EQ(cut(SnapshotId::draw()).status, Status::kOk);
  EXPECT_EQ(client_->ask(simple_request(Operation::kThaw, id_)).status, Status::kOk);
}

TEST_F(WardenSnapshots, ALayerIsKeptBeyondItsIsolateIfThatIsAsked) {
  Request release = simple_request(Operation::kRemove, id_);
  release.keeps_layer = 1;
  ASSERT_EQ(client_->ask(release).status, Status::kOk);
  EXPECT_EQ(client_->ask(release).status, Status::kOk) << "it can be repeated";
  warden_->kill_hard();
  warden_->start();
  client_ = Client::connect(directories_.run());
  EXPECT_EQ(client_->ask(release).status, Status::kOk) << "nobody took it for a dead one's";
  Request again = launch_request(id_, image_);
  again.keeps_layer = 1;
  ASSERT_EQ(client_->ask(again).status, Status::kOk);
  EXPECT_EQ(client_->ask(release).status, Status::kOk);
  EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id_)).status, Status::kOk);
  Reply gone = client_->ask(release);
  EXPECT_EQ(gone.status, Status::kFailed);
  EXPECT_EQ(gone.step, Step::kLayer);
  EXPECT_EQ(gone.system_errno, ENOENT);
}

TEST_F(WardenSnapshots, OfALayerThatWasKeptNeedNoIsolate) {
  Request release = simple_request(Operation::kRemove, id_);
  release.keeps_layer = 1;
  ASSERT_EQ(client_->ask(release).status, Status::kOk);
  SnapshotId snapshot = SnapshotId::draw();
  Reply reply = cut(snapshot);
  ASSERT_EQ(reply.status, Status::kOk) << reply.system_errno;
  EXPECT_GT(reply.held_bytes, 0u);
  EXPECT_EQ(launch(SandboxId::draw(), &snapshot, reply.held_bytes).status, Status::kOk);
  EXPECT_EQ(client_->ask(release).status, Status::kOk) << "it is there as before";
  EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id_)).status, Status::kOk);
  Reply none = cut(SnapshotId::draw());
  EXPECT_EQ(none.status, Status::kFailed);
  EXPECT_EQ(none.system_errno, ENOENT);
}

TEST(WardenRequests, ASnapshotMustBeNamedWhereItIsNeededAndNowhereElse) {
  auto parses = [](const Request& request) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&request);
    return parse_request({bytes, sizeof request}).ok();
  };
  Request request = simple_request(Operation::kSnapshot, SandboxId::draw());
  EXPECT_FALSE(parses(request));
  set_snapshot(request, SnapshotId::draw());
  EXPECT_TRUE(parses(request));
  request.snapshot_id[3] = '/';
  EXPECT_FALSE(parses(request));
  request = simple_request(Operation::kRemove, SandboxId::draw());
  set_snapshot(request, SnapshotId::draw());
  EXPECT_FALSE(parses(request));
  request = launch_request(SandboxId::draw(), {1});
  EXPECT_TRUE(parses(request));
  request.inherited_bytes = request.disk_bytes;
  EXPECT_FALSE(parses(request)) << "it would have no room";
}

}  // namespace
}  // namespace atl::warden
