#include <unistd.h>

#include <gtest/gtest.h>

#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;
using ImageBytes = std::array<unsigned char, Digest::kBytes>;

class Toolbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    image_ = directories_.make_image(kPlainImage);
    toolbox_ = directories_.make_image({"usr"});
    warden_.emplace(directories_, 0);
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
  }
  Reply launch(const ImageBytes& image, const ImageBytes& toolbox) {
    id_ = SandboxId::draw();
    Request request = launch_request(id_, image);
    request.toolbox = toolbox;
    return client_->ask(request);
  }
  std::string ask(const std::string& question) {
    return ask_probe(directories_.run(), id_, question);
  }

  Directories directories_;
  ImageBytes image_ = {}, toolbox_ = {};
  SandboxId id_ = SandboxId::draw();
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
};

TEST_F(Toolbox, IsReadOnlyAtItsPlaceAndBelongsToRootInside) {
  ASSERT_EQ(launch(image_, toolbox_).status, Status::kOk);
  EXPECT_EQ(ask("read /opt/atoll/hello"), "from the image\n");
  EXPECT_EQ(ask("fill /opt/atoll/usr/x 10"), "0 " + std::to_string(EROFS));
  std::string report = ask("report");
  std::string mounts = report.substr(report.find("[mounts]"));
  EXPECT_NE(mounts.find(" / /opt/atoll ro,nosuid,nodev,"), std::string::npos) << mounts;
}

TEST_F(Toolbox, IsSharedByAllIsolatesAndGoesWithTheImages) {
  ASSERT_EQ(launch(image_, toolbox_).status, Status::kOk);
  auto count = [&] {
    std::string mounts = read_text("/proc/" + std::to_string(warden_->pid()) + "/mountinfo");
    size_t found = 0;
    for (size_t at = mounts.find(to_hex(toolbox_)); at != mounts.npos;
         at = mounts.find(to_hex(toolbox_), at + 1))
      ++found;
    return found;
  };
  size_t with_one = count();
  EXPECT_GE(with_one, 1u);
  ASSERT_EQ(launch(image_, toolbox_).status, Status::kOk);
  EXPECT_EQ(count(), with_one);
  Request removal = simple_request(Operation::kRemoveImage);
  removal.image = toolbox_;
  ASSERT_EQ(client_->ask(removal).status, Status::kOk);
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(ask("read /opt/atoll/hello"), "from the image\n") << "those that run keep it";
  Reply reply = launch(image_, toolbox_);
  EXPECT_EQ(reply.status, Status::kNoImage);
}

TEST_F(Toolbox, WithoutOneThePlaceIsEmpty) {
  ASSERT_EQ(launch(image_, {}).status, Status::kOk);
  EXPECT_EQ(ask("names /opt/atoll"), "");
  EXPECT_EQ(ask("report").find("/opt/atoll"), std::string::npos);
}

TEST_F(Toolbox, CoversWhatTheImageHasThere) {
  auto own = directories_.make_image(
      {"dev", "proc", "run", "tmp", "etc", "sys", "opt", "opt/atoll", "opt/atoll/usr", "opt/own"});
  ASSERT_EQ(launch(own, toolbox_).status, Status::kOk);
  EXPECT_EQ(ask("read /opt/atoll/hello"), "from the image\n");
}

TEST_F(Toolbox, AnImageWithoutAPlaceForItHasNone) {
  for (const char* opt : {"opt=", "opt>tmp"}) {
    auto odd = directories_.make_image({"dev", "proc", "run", "tmp", "etc", "sys", opt});
    ASSERT_EQ(launch(odd, toolbox_).status, Status::kOk) << opt;
    std::string report = ask("report");
    EXPECT_EQ(report.find("/opt/atoll"), std::string::npos) << opt;
    EXPECT_EQ(report.find("/tmp/atoll"), std::string::npos) << opt;
  }
}

TEST_F(Toolbox, IsOfALaunchAlone) {
  ASSERT_EQ(launch(image_, toolbox_).status, Status::kOk);
  Request request = simple_request(Operation::kRemove, id_);
  request.toolbox = toolbox_;
  std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
  EXPECT_TRUE(client_->send_bytes(bytes));
  EXPECT_FALSE(client_->receive().has_value()) << "a message with a field that is not used";
}

}  // namespace
}  // namespace atl::warden
