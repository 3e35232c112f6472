// Isolates that are frozen, on the real kernel: also when the warden dies.
#include <glob.h>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "linux/cgroup_tree.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

class Freezer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    auto image = directories_.make_image(kPlainImage);
    warden_.emplace(directories_, 0);
    connect();
    Reply reply = client_->ask(launch_request(id_, image));
    ASSERT_EQ(reply.status, Status::kOk) << step_name(reply.step) << " " << reply.system_errno;
  }
  void TearDown() override {
    if (!warden_) return;
    EXPECT_EQ(client_->ask(simple_request(Operation::kRemove, id_)).status, Status::kOk);
    wait_until_childless(warden_->pid());
    for (const std::string& trace : traces(directories_.run(), warden_->pid()))
      EXPECT_FALSE(trace.starts_with("group") || trace.starts_with("record")) << trace;
  }
  void connect() {
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
  }
  Reply ask(Operation operation) { return client_->ask(simple_request(operation, id_)); }
  std::string group() const {
    auto tree = linux::read_cgroups();
    std::string pattern = tree->v2 + "/atoll/*/" + id_.string() + "/run";
    glob_t found;
    std::string path = glob(pattern.c_str(), 0, nullptr, &found) == 0 ? found.gl_pathv[0] : "";
    globfree(&found);
    return path;
  }
  bool is_frozen() const {
    return read_text(group() + "/cgroup.events").find("frozen 1") != std::string::npos;
  }

  Directories directories_;
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
  SandboxId id_ = SandboxId::draw();
};

TEST_F(Freezer, FreezesAndThawsAsOftenAsAsked) {
  EXPECT_FALSE(is_frozen());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(Operation::kFreeze).status, Status::kOk);
  EXPECT_TRUE(is_frozen());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(Operation::kThaw).status, Status::kOk);
  EXPECT_FALSE(is_frozen());
}

TEST_F(Freezer, AFrozenIsolateCanBeRemoved) {
  EXPECT_EQ(ask(Operation::kFreeze).status, Status::kOk);
  EXPECT_EQ(ask(Operation::kRemove).status, Status::kOk);
  EXPECT_EQ(group(), "");
  Reply reply = ask(Operation::kFreeze);
  EXPECT_EQ(reply.status, Status::kFailed);
  EXPECT_EQ(reply.system_errno, ENOENT);
}

TEST_F(Freezer, TheNextWardenKeepsWhatWasAskedForAndThawsTheRest) {
  EXPECT_EQ(ask(Operation::kFreeze).status, Status::kOk);
  warden_->kill_hard();
  warden_->start();
  connect();
  EXPECT_TRUE(is_frozen());
  EXPECT_EQ(ask(Operation::kThaw).status, Status::kOk);
  // As a helper leaves it that died in the middle of its work.
  ASSERT_TRUE(linux::freeze_group(group(), test_timeout_ms()).ok());
  warden_->kill_hard();
  warden_->start();
  connect();
  EXPECT_FALSE(is_frozen());
}

}  // namespace
}  // namespace atl::warden
