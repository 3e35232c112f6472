#include "api/route_pattern.h"

#include <gtest/gtest.h>

namespace atl::api {
namespace {

using Parameters = std::optional<std::vector<std::string>>;

Parameters fit(std::string_view pattern, std::string_view path) {
  return RoutePattern(pattern).fit(PathParts(path));
}

TEST(RoutePattern, TakesAPathApart) {
  EXPECT_EQ(fit("/v1/boxes", "/v1/boxes"), Parameters(std::in_place));
  EXPECT_EQ(fit("/v1/boxes/{id}", "/v1/boxes/a%20b"), Parameters({{"a b"}}));
  EXPECT_EQ(fit("/v1/{a}/x/{b}", "/v1/1/x/2"), (Parameters({{"1", "2"}})));
  for (const char* path : {"", "v1/boxes", "/v1", "/v1/boxes/", "/v1//boxes", "/v1/Boxes", "/"})
    EXPECT_EQ(fit("/v1/boxes", path), std::nullopt) << path;
  for (const char* path : {"/v1/boxes/", "/v1/boxes/%zz", "/v1/boxes/%00", "/v1/boxes/a/b"})
    EXPECT_EQ(fit("/v1/boxes/{id}", path), std::nullopt) << path;
}

TEST(RoutePattern, AnEndTakesTheRestAsItCame) {
  EXPECT_EQ(fit("/f/{path...}", "/f/a/%2f//b/"), Parameters({{"a/%2f//b/"}}));
  EXPECT_EQ(fit("/f/{path...}", "/f/"), Parameters({{""}}));
  EXPECT_EQ(fit("/f/{path...}", "/f"), Parameters({{""}}));
  EXPECT_EQ(fit("/f/{path...}", "/g/a"), std::nullopt);
}

TEST(RoutePattern, APathOfManyPartsIsNotTakenApartFurtherThanRoutesGo) {
  std::string many = "/f";
  for (int i = 0; i < 10'000; ++i) many += "/a";
  EXPECT_EQ(PathParts(many).size(), PathParts::kMost);
  EXPECT_EQ(fit("/f/{path...}", many), Parameters({{many.substr(3)}}));
  EXPECT_EQ(fit("/f/{id}", many), std::nullopt);
}

}  // namespace
}  // namespace atl::api
