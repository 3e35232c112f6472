#include "api/e2b/signature.h"

#include <gtest/gtest.h>

namespace atl::api::e2b {
namespace {

constexpr std::string_view kToken = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";

http::Request get(std::string query) {
  http::Request request;
  request.method = http::Method::kGet;
  request.path = "/files";
  request.query = std::move(query);
  return request;
}

TEST(Signature, IsTheOneThatClientsMake) {
  EXPECT_EQ(signature_of({"hello.txt", "read", "user", kToken, ""}),
            "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

TEST(Signature, CoversPathUserAndEnd) {
  std::string sign = "signature=v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
  EXPECT_TRUE(is_signed(get("path=hello.txt&username=user&" + sign), kToken));
  EXPECT_FALSE(is_signed(get("path=other.txt&username=user&" + sign), kToken));
  EXPECT_FALSE(is_signed(get("path=hello.txt&username=root&" + sign), kToken));
  EXPECT_FALSE(is_signed(get("path=hello.txt&" + sign), kToken));
  std::string late = "&signature_expiration=99999999999";
  EXPECT_FALSE(is_signed(get("path=hello.txt&username=user&" + sign + late), kToken));
  EXPECT_FALSE(is_signed(get("path=hello.txt&username=user&" + sign), "another"));
  EXPECT_FALSE(is_signed(get("path=hello.txt&username=user"), kToken));
  http::Request post = get("path=hello.txt&username=user&" + sign);
  post.method = http::Method::kPost;
  EXPECT_FALSE(is_signed(post, kToken)) << "to read is not to write";
}

TEST(Signature, Expires) {
  WallTime now{std::chrono::seconds(1000)};
  EXPECT_FALSE(has_expired(get("path=x"), now));
  EXPECT_FALSE(has_expired(get("signature_expiration=1001"), now));
  EXPECT_TRUE(has_expired(get("signature_expiration=1000"), now));
  EXPECT_TRUE(has_expired(get("signature_expiration=soon"), now));
}

}  // namespace
}  // namespace atl::api::e2b
