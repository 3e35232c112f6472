#include "notary/signing_key.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::notary {
namespace {

class SigningKeys : public ::testing::Test {
 protected:
  SigningKeys() {
    char path[] = "/tmp/atoll-notary-test-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~SigningKeys() override { std::filesystem::remove_all(directory_); }
  std::string key() const { return directory_ + "/receipt.key"; }

  std::string directory_;
};

TEST_F(SigningKeys, IsMadeOnceWithItsPublicHalf) {
  EXPECT_FALSE(SigningKey::open(key()).ok());
  auto made = SigningKey::open_or_create(key());
  ASSERT_TRUE(made.ok());
  auto again = SigningKey::open_or_create(key());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->public_key(), made->public_key());
  EXPECT_EQ(read_file(directory_ + "/receipt.pub").value(), to_base64(made->public_key()) + "\n");
  struct stat status;
  ASSERT_EQ(stat(key().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SigningKeys, TwoKeysSignDifferently) {
  auto one = SigningKey::open_or_create(key());
  auto other = SigningKey::open_or_create(directory_ + "/other.key");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->sign("text").value().size(), 64u);
  EXPECT_EQ(one->sign("text").value(), one->sign("text").value());
  EXPECT_NE(one->sign("text").value(), one->sign("texu").value());
  EXPECT_NE(one->sign("text").value(), other->sign("text").value());
}

TEST_F(SigningKeys, BadFilesAreRefused) {
  ASSERT_TRUE(SigningKey::open_or_create(key()).ok());
  ASSERT_EQ(chmod(key().c_str(), 0640), 0);
  EXPECT_FALSE(SigningKey::open(key()).ok()) << "others can read it";
  ASSERT_TRUE(replace_file(key(), "short", 0600).ok());
  EXPECT_FALSE(SigningKey::open_or_create(key()).ok()) << "a broken key is not replaced silently";
}

}  // namespace
}  // namespace atl::notary
