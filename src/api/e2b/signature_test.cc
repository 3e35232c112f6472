#include "api/e2b/signature.h"

#include <gtest/gtest.h>

namespace atl::api::e2b {
namespace {

constexpr std::string_view kToken = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";

std::optional<FileLink> link_in(std::string query, http::Method method = http::Method::kGet) {
  http::Request request;
  request.method = method;
  request.path = "/files";
  request.query = std::move(query);
  return parse_link(request);
}

bool is_signed(const std::string& query, std::string_view token = kToken,
               http::Method method = http::Method::kGet) {
  auto link = link_in(query, method);
  return link && LinkComparison(*link).is_signed_with(token);
}

TEST(Signature, IsTheOneThatClientsMake) {
  FileLink link{"hello.txt", "read", "user", "", ""};
  EXPECT_EQ(signature_of(link, kToken), "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

TEST(Signature, CoversPathUserAndEnd) {
  std::string sign = "signature=v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
  EXPECT_TRUE(is_signed("path=hello.txt&username=user&" + sign));
  EXPECT_FALSE(is_signed("path=other.txt&username=user&" + sign));
  EXPECT_FALSE(is_signed("path=hello.txt&username=root&" + sign));
  EXPECT_FALSE(is_signed("path=hello.txt&" + sign));
  EXPECT_FALSE(is_signed("path=hello.txt&username=user&signature_expiration=99999999999&" + sign));
  EXPECT_FALSE(is_signed("path=hello.txt&username=user&" + sign, "another"));
  EXPECT_FALSE(is_signed("path=hello.txt&username=user"));
  EXPECT_FALSE(is_signed("path=hello.txt&username=user&" + sign + "&" + sign)) << "twice is none";
  EXPECT_FALSE(is_signed("path=hello.txt&username=user&" + sign, kToken, http::Method::kPost))
      << "to read is not to write";
}

TEST(Signature, OneComparisonServesManyTokens) {
  FileLink link{std::string(4000, 'p'), "read", "", "99999999999", ""};
  link.signature = signature_of(link, "the right one");
  LinkComparison comparison(link);
  for (const char* wrong : {"", "the", "the right one:99999999999", "another"})
    EXPECT_FALSE(comparison.is_signed_with(wrong)) << wrong;
  EXPECT_TRUE(comparison.is_signed_with("the right one"));
  EXPECT_TRUE(comparison.is_signed_with("the right one")) << "as often as one likes";
}

TEST(Signature, ALinkThatIsOverOrTooLongIsRefused) {
  WallTime now{std::chrono::seconds(1000)};
  auto reason_of = [&](const std::string& query) {
    auto checked = check_link(*link_in("signature=v1_x&" + query), now);
    return checked ? std::string() : checked.error().reason();
  };
  EXPECT_EQ(reason_of("path=x"), "");
  EXPECT_EQ(reason_of("signature_expiration=1001"), "");
  EXPECT_EQ(reason_of("signature_expiration=1000"), "unauthenticated");
  EXPECT_EQ(reason_of("signature_expiration=soon"), "unauthenticated");
  EXPECT_EQ(reason_of("path=" + std::string(4096, 'a')), "");
  EXPECT_EQ(reason_of("path=" + std::string(4097, 'a')), "name_too_long");
}

}  // namespace
}  // namespace atl::api::e2b
