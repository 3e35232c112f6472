// What is sent as a sealed snapshot, before any of it can be one.
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

class SealsTest : public testing::Test {
 protected:
  SealsTest() {
    // Some key: nothing that is sent here gets as far as to be believed.
    std::string text = std::string(43, 'A') + "=\n";
    EXPECT_TRUE(replace_file(server_.bed.directory() + "/receipt.pub", text, 0644).ok());
  }
  std::string send(std::string body, const std::string& key = "") {
    http::Headers headers{{"Authorization", "Bearer " + server_.key},
                          {"Content-Type", "application/vnd.atoll.snapshot"}};
    if (!key.empty()) headers.add("Idempotency-Key", key);
    auto response = server_.send_as(http::Method::kPost, "/v1/snapshots", headers, std::move(body));
    return std::to_string(response.status) + " " + response.body;
  }

  TestServer server_;
  // The head of a manifest of 4 MiB, which is waited for.
  std::string head_ = std::string("ATLSNAP1") + std::string("\0\0\x40\0", 4);
};

TEST_F(SealsTest, MoreThanMayComeIsRefusedWhileItComes) {
  std::string more = send(head_ + std::string(1 << 20, 'x'));
  EXPECT_NE(more.find("archive_too_large"), std::string::npos) << more;
  std::string cut = send(head_ + std::string(1000, 'x'));
  EXPECT_NE(cut.find("snapshot_refused"), std::string::npos) << cut;
}

TEST_F(SealsTest, AKeyIsNotTakenByWhatIsRefused) {
  EXPECT_NE(send("one", "key").find("snapshot_refused"), std::string::npos);
  EXPECT_NE(send("other", "key").find("snapshot_refused"), std::string::npos);
}

}  // namespace
}  // namespace atl::api
