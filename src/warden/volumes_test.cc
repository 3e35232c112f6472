// Volumes in isolates, on the real kernel.
#include <gtest/gtest.h>

#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

constexpr uint64_t kMiB = 1 << 20;

Request volume_request(Operation operation, const VolumeId& id, uint64_t bytes = 0) {
  Request request = simple_request(operation);
  id.view().copy(request.snapshot_id.data(), id.view().size());
  request.disk_bytes = bytes;
  return request;
}

bool parses(const Request& request) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&request);
  return parse_request({bytes, sizeof request}).ok();
}

class WardenVolumes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    auto names = kPlainImage;
    names.insert(names.end(), {"link>etc", "file="});
    image_ = directories_.make_image(names);
    warden_.emplace(directories_, 0);
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
    ASSERT_EQ(ask(volume_request(Operation::kCreateVolume, volume_, 8 * kMiB)), Status::kOk);
  }
  void TearDown() override {
    if (!warden_) return;
    for (const SandboxId& id : launched_)
      EXPECT_EQ(ask(simple_request(Operation::kRemove, id)), Status::kOk);
    EXPECT_EQ(ask(volume_request(Operation::kRemoveVolume, volume_)), Status::kOk);
    wait_until_childless(warden_->pid());
    EXPECT_TRUE(list().empty());
  }
  Status ask(const Request& request) { return client_->ask(request).status; }
  Reply launch(const std::string& path, const VolumeId& volume) {
    Message message = {};
    SandboxId id = SandboxId::draw();
    message.request = launch_request(id, image_);
    message.volumes.count = 1;
    volume.view().copy(message.volumes.list[0].volume.data(), VolumeId::kLength);
    path.copy(message.volumes.list[0].path.data(), kMaxPath);
    client_->send_bytes(std::string(reinterpret_cast<const char*>(&message), sizeof message));
    auto answer = client_->receive();
    if (!answer) return {};
    launched_.push_back(id);
    auto parsed =
        parse_reply({reinterpret_cast<const unsigned char*>(answer->data()), answer->size()});
    EXPECT_TRUE(parsed.ok());
    return parsed ? parsed->reply : Reply{};
  }
  std::vector<std::string> list() {
    std::vector<std::string> ids;
    EXPECT_EQ(client_->ask(simple_request(Operation::kListVolumes), &ids).status, Status::kOk);
    return ids;
  }

  static constexpr size_t kMaxPath = linux::kMaxVolumePathBytes;
  Directories directories_;
  std::array<unsigned char, Digest::kBytes> image_ = {};
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
  VolumeId volume_ = VolumeId::draw();
  std::vector<SandboxId> launched_;
};

TEST_F(WardenVolumes, OutliveIsolatesAndTheWarden) {
  EXPECT_NE(ask(volume_request(Operation::kCreateVolume, volume_, 8 * kMiB)), Status::kOk)
      << "the id is taken";
  EXPECT_EQ(list(), std::vector<std::string>{volume_.string()}) << "and what has it stays";
  EXPECT_EQ(launch("/srv/new", volume_).status, Status::kOk);
  EXPECT_EQ(ask(simple_request(Operation::kRemove, launched_.back())), Status::kOk);
  warden_->kill_hard();
  warden_->start();
  client_ = Client::connect(directories_.run());
  EXPECT_EQ(list(), std::vector<std::string>{volume_.string()});
  EXPECT_EQ(launch("/tmp", volume_).status, Status::kOk);
}

TEST_F(WardenVolumes, APlaceThatIsNoDirectoryFailsTheLaunch) {
  for (const char* path : {"/link/x", "/link", "/file", "/file/x", "/proc/x", "/dev", "/run/x"}) {
    Reply reply = launch(path, volume_);
    EXPECT_EQ(reply.status, Status::kFailed) << path;
    EXPECT_EQ(reply.step, Step::kVolumes) << path << " " << step_name(reply.step);
  }
  EXPECT_EQ(launch("/etc/../x", volume_).magic, 0u) << "the connection is closed";
  client_ = Client::connect(directories_.run());
  EXPECT_EQ(launch("/tmp", VolumeId::draw()).status, Status::kFailed) << "there is none";
}

TEST(WardenRequests, AVolumeIsNamedAndSized) {
  VolumeId volume = VolumeId::draw();
  EXPECT_TRUE(parses(volume_request(Operation::kCreateVolume, volume, kMiB)));
  EXPECT_FALSE(parses(volume_request(Operation::kCreateVolume, volume, kMiB - 1)));
  EXPECT_FALSE(parses(volume_request(Operation::kRemoveVolume, volume, kMiB)));
  EXPECT_TRUE(parses(volume_request(Operation::kRemoveVolume, volume)));
  EXPECT_FALSE(parses(simple_request(Operation::kRemoveVolume)));
  EXPECT_FALSE(parses(volume_request(Operation::kRemoveSnapshot, volume))) << "another kind";
  EXPECT_TRUE(parses(simple_request(Operation::kListVolumes)));
  Request request = volume_request(Operation::kCreateVolume, volume, kMiB);
  request.pids = 8;
  EXPECT_FALSE(parses(request));
}

}  // namespace
}  // namespace atl::warden
