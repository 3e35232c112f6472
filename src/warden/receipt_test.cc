#include "warden/receipt.h"

#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using namespace testing;

class Receipts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: namespaces, mounts and cgroups";
    image_ = directories_.make_image(kPlainImage);
    warden_.emplace(directories_, 0);
    client_ = Client::connect(directories_.run());
    ASSERT_TRUE(client_.has_value());
  }

  Reply launch(const SandboxId& id, const std::string& nonce = "") {
    Request request = launch_request(id, image_);
    EXPECT_LE(nonce.size(), request.nonce.size());
    if (!nonce.empty()) {
      request.nonce.fill('|');
      std::copy(nonce.begin(), nonce.end(), request.nonce.begin());
    }
    return client_->ask(request);
  }

  std::string receipt_of(const SandboxId& id) {
    Request request = simple_request(Operation::kReceipt, id);
    std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
    EXPECT_TRUE(client_->send_bytes(bytes));
    auto reply = client_->receive();
    if (!reply) return "";
    auto parsed =
        parse_reply({reinterpret_cast<const unsigned char*>(reply->data()), reply->size()});
    if (!parsed || parsed->reply.status != Status::kOk) return "";
    return std::string(parsed->receipt.begin(), parsed->receipt.end());
  }

  Directories directories_;
  std::array<unsigned char, Digest::kBytes> image_ = {};
  std::optional<RunningWarden> warden_;
  std::optional<Client> client_;
};

TEST_F(Receipts, TellsWhatIsEnforcedFromBothSides) {
  SandboxId id = SandboxId::draw();
  ASSERT_EQ(launch(id).status, Status::kOk);
  std::string receipt = receipt_of(id);
  for (const char* part :
       {R"("driver":"jail")", R"({"name":"no_new_privs","outside":"1","inside":"1"})",
        R"({"name":"seccomp.mode","outside":"2","inside":"2"})",
        R"({"name":"capabilities.effective","outside":"0000000000000000",)",
        R"({"name":"descriptors","outside":"0 1 2","inside":"0 1 2"})",
        R"({"name":"limits.memory_bytes","outside":"67108864","inside":null})",
        R"({"name":"limits.pids","outside":"64","inside":null})",
        R"({"name":"limits.cpu_millis","outside":"500","inside":null})",
        R"({"name":"limits.disk_bytes","outside":"8388608","inside":null})", R"("signature":")"})
    EXPECT_NE(receipt.find(part), std::string::npos) << part << " is not in " << receipt;
  EXPECT_NE(receipt.find(id.string()), std::string::npos);
  EXPECT_EQ(receipt, receipt_of(id)) << "the same each time it is asked for";
}

TEST_F(Receipts, OfNobodyIsAnError) { EXPECT_EQ(receipt_of(SandboxId::draw()), ""); }

TEST_F(Receipts, AProbeThatDoesNotLieIsBelieved) {
  EXPECT_EQ(launch(SandboxId::draw(), "LIE|nothing|x").status, Status::kOk);
}

TEST_F(Receipts, EveryDifferenceFailsTheLaunchAndLeavesNothing) {
  SandboxId first = SandboxId::draw();  // mounts the image, which stays
  ASSERT_EQ(launch(first).status, Status::kOk);
  ASSERT_EQ(client_->ask(simple_request(Operation::kRemove, first)).status, Status::kOk);
  wait_until_childless(warden_->pid());
  auto before = traces(directories_.run(), warden_->pid());
  for (const char* lie :
       {"LIE|permi|parmi", "LIE|privs 1|p 0", "LIE|ters 1|er 2", "LIE|ob:3|ob:4",
        "LIE|time:|tame:", "LIE|rnel |rnal ", "LIE|uid 1|uid 2", "LIE|yers 1|er 0",
        "LIE|ode 2|ode 0", "LIE|\n|", "LIE|descriptor|", "LIE|stand-in|"}) {
    Reply reply = launch(SandboxId::draw(), lie);
    EXPECT_EQ(reply.status, Status::kFailed) << lie;
    EXPECT_EQ(reply.step, Step::kReceipt) << lie << ": " << step_name(reply.step);
    EXPECT_EQ(settled_traces(directories_.run(), warden_->pid(), before), before) << lie;
  }
}

TEST_F(Receipts, ManifestsOfSnapshotsAreSignedByTheSameKey) {
  Request request = simple_request(Operation::kSeal);
  EXPECT_FALSE(parse_request({reinterpret_cast<unsigned char*>(&request), sizeof request}).ok())
      << "it names nothing";
  request.image.fill(7);
  auto sign = [&] {
    std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
    EXPECT_TRUE(client_->send_bytes(bytes));
    std::string reply = client_->receive().value_or("");
    auto parsed = parse_reply({reinterpret_cast<const unsigned char*>(reply.data()), reply.size()});
    if (!parsed || parsed->reply.status != Status::kOk) return std::string();
    return std::string(parsed->receipt.begin(), parsed->receipt.end());
  };
  std::string first = sign();
  ASSERT_EQ(first.size(), kSealBytes);
  EXPECT_EQ(sign(), first);
  request.image.fill(8);
  std::string second = sign();
  EXPECT_NE(second, first);
  constexpr size_t kKeyBytes = 32;
  EXPECT_EQ(second.substr(0, kKeyBytes), first.substr(0, kKeyBytes));
}

}  // namespace
}  // namespace atl::warden
