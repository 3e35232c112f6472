#include "linux/volume_mounts.h"

#include <cstring>

#include <gtest/gtest.h>

namespace atl::linux {
namespace {

VolumeMounts one_volume(const std::string& path) {
  VolumeMounts volumes = {};
  volumes.count = 1;
  VolumeId::draw().view().copy(volumes.list[0].volume.data(), VolumeId::kLength);
  path.copy(volumes.list[0].path.data(), volumes.list[0].path.size());
  return volumes;
}

TEST(VolumeMounts, PathsAreAbsoluteAndPlain) {
  for (const char* good : {"/a", "/srv/cache", "/home/user/.cache", "/a..b/c+d@e-f_g"})
    EXPECT_TRUE(is_volume_path(good)) << good;
  for (const char* bad : {"", "/", "a", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/..", "/a b",
                          "/a\nb", "/\xc3\xa4", "/a:b"})
    EXPECT_FALSE(is_volume_path(bad)) << bad;
  std::string longest = "/" + std::string(kMaxVolumePathBytes - 1, 'x');
  EXPECT_TRUE(is_volume_path(longest));
  EXPECT_FALSE(is_volume_path(longest + "x"));
}

TEST(VolumeMounts, EveryFieldIsChecked) {
  EXPECT_TRUE(VolumeMounts{}.check().ok());
  VolumeMounts good = one_volume("/srv/cache");
  ASSERT_TRUE(good.check().ok());
  EXPECT_FALSE(one_volume("/srv/../etc").check().ok());
  EXPECT_FALSE(one_volume(std::string(200, '/')).check().ok());
  VolumeMounts bad = good;
  bad.count = 0;
  EXPECT_FALSE(bad.check().ok()) << "not counted";
  bad.count = kMaxVolumes + 1;
  EXPECT_FALSE(bad.check().ok());
  bad = good;
  bad.list[0].volume[0] = 's';
  EXPECT_FALSE(bad.check().ok()) << "the id of a sandbox";
  bad = good;
  bad.list[0].read_only = 2;
  EXPECT_FALSE(bad.check().ok());
  bad = good;
  bad.list[0].reserved[1] = 1;
  EXPECT_FALSE(bad.check().ok());
  bad = good;
  bad.list[0].path[50] = 'x';
  EXPECT_FALSE(bad.check().ok()) << "something behind the end";
}

}  // namespace
}  // namespace atl::linux
