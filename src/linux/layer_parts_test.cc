#include "linux/layer_parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

class LayerParts : public ::testing::Test {
 protected:
  LayerParts() {
    char path[] = "/tmp/atoll-layer-parts-test-XXXXXX";
    directory_ = mkdtemp(path);
    layer_ = *open_file(directory_, O_RDONLY | O_DIRECTORY);
  }
  ~LayerParts() override { std::filesystem::remove_all(directory_); }

  Result<void> make(const std::string& mark, LayerOrigin origin) {
    return make_layer_parts(layer_.get(), mark, 1 << 20, origin);
  }
  bool has(const std::string& name) { return std::filesystem::exists(directory_ + "/" + name); }

  std::string directory_;
  Fd layer_;
};

TEST_F(LayerParts, AreMadeAndMadeAgainOfASnapshot) {
  ASSERT_TRUE(make("machine", LayerOrigin::kNew).ok());
  EXPECT_TRUE(has("upper") && has("work") && has("machine"));
  EXPECT_EQ(make("machine", LayerOrigin::kNew).error().system_errno(), EEXIST);
  std::filesystem::remove(directory_ + "/work");
  ASSERT_TRUE(make("machine", LayerOrigin::kSnapshot).ok());
  EXPECT_TRUE(has("work"));
  EXPECT_EQ(*read_file(directory_ + "/machine"), "1048576");
}

TEST_F(LayerParts, OfOneWallAreNotThoseOfAnother) {
  for (const std::string& mark : {std::string(), std::string("machine"), std::string("sentry")}) {
    std::filesystem::remove_all(directory_ + "/upper");
    std::filesystem::remove_all(directory_ + "/work");
    ASSERT_TRUE(make(mark, LayerOrigin::kNew).ok());
    for (const std::string& other : {std::string(), std::string("machine"), std::string("sentry")})
      EXPECT_EQ(make(other, LayerOrigin::kSnapshot).ok(), other == mark) << mark << " " << other;
    if (!mark.empty()) std::filesystem::remove(directory_ + "/" + mark);
  }
}

}  // namespace
}  // namespace atl::linux
