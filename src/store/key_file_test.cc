#include "store/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class KeyFileTest : public testing::Test {
 protected:
  KeyFileTest() : catalog_(Catalog::open(directory_ / "db").value()) {}

  std::string ensure() {
    auto key = ensure_local_key(*catalog_, path_);
    EXPECT_TRUE(key.ok()) << key.error().message();
    return key.ok() ? *key : "";
  }
  Error refusal() {
    auto key = ensure_local_key(*catalog_, path_);
    EXPECT_FALSE(key.ok());
    return key.ok() ? Error(Code::kInvalid, "") : std::move(key).error();
  }
  bool in_force(const std::string& key) {
    return catalog_->keys().find_by_hash(sha256(key).bytes())->has_value();
  }
  size_t rows() { return catalog_->keys().list(kLocalTenant)->size(); }

  TestDirectory directory_;
  std::string path_ = directory_ / "local.key";
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(KeyFileTest, FirstStartDrawsAKeyForTheLocalTenant) {
  std::string key = ensure();
  EXPECT_TRUE(is_key(key)) << key;
  EXPECT_EQ(key.size(), 46u);
  EXPECT_EQ(read_file(path_).value(), key + "\n");
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  auto row = catalog_->keys().find_by_hash(sha256(key).bytes());
  ASSERT_TRUE(row.ok() && row->has_value());
  EXPECT_EQ((*row)->tenant, kLocalTenant);
  EXPECT_EQ((*row)->name, "local");
}

TEST_F(KeyFileTest, LaterStartsGiveTheSameKey) {
  std::string key = ensure();
  EXPECT_EQ(ensure(), key);
  EXPECT_EQ(rows(), 1u);
}

TEST_F(KeyFileTest, KeyTextIsNowhereInTheDatabase) {
  std::string key = ensure();
  catalog_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    if (entry.path() == path_) continue;
    auto bytes = read_file(entry.path(), 64 << 20);
    EXPECT_EQ(bytes->find(key.substr(6)), std::string::npos) << entry.path();
  }
}

TEST_F(KeyFileTest, CrashBeforeTheRowHeals) {
  std::string key = draw_key();
  ASSERT_TRUE(replace_file(path_, key, 0600).ok());
  EXPECT_EQ(ensure(), key);
  EXPECT_TRUE(in_force(key));
}

TEST_F(KeyFileTest, MissingFileDrawsANewKeyAndRevokesTheOld) {
  std::string old = ensure();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  std::string key = ensure();
  EXPECT_NE(key, old);
  EXPECT_TRUE(in_force(key));
  EXPECT_FALSE(in_force(old));
  EXPECT_EQ(rows(), 2u);
}

TEST_F(KeyFileTest, FileOthersMayReadIsRefused) {
  ensure();
  for (mode_t mode : {0644, 0640, 0400, 0700, 04600}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    Error error = refusal();
    EXPECT_EQ(error.code(), Code::kDenied);
    EXPECT_NE(error.message().find("chmod 600"), std::string::npos) << error.message();
  }
}

TEST_F(KeyFileTest, FileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ensure();
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  Error error = refusal();
  EXPECT_EQ(error.code(), Code::kDenied);
  EXPECT_NE(error.message().find("chown"), std::string::npos) << error.message();
}

TEST_F(KeyFileTest, MalformedFileIsRefused) {
  std::string key = draw_key();
  std::string upper = key;
  upper[10] = 'A';
  for (const std::string& text :
       {std::string(), std::string("\n"), key + "a", key.substr(1), upper, key + "\n\n",
        "sk_live_" + key.substr(8), std::string(5000, 'a')}) {
    ASSERT_TRUE(replace_file(path_, text, 0600).ok());
    Error error = refusal();
    EXPECT_EQ(rows(), 0u) << text;
    EXPECT_FALSE(error.message().find(key) != std::string::npos) << "the message shows the key";
  }
}

TEST_F(KeyFileTest, LinksAndOtherFilesAreRefused) {
  ASSERT_TRUE(replace_file(directory_ / "elsewhere", draw_key(), 0600).ok());
  ASSERT_EQ(symlink((directory_ / "elsewhere").c_str(), path_.c_str()), 0);
  EXPECT_EQ(refusal().code(), Code::kDenied);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal().code(), Code::kDenied);
}

TEST_F(KeyFileTest, RevokedKeyIsNotTakenBack) {
  std::string key = ensure();
  std::string id = catalog_->keys().list(kLocalTenant)->at(0).id;
  ASSERT_TRUE(catalog_->keys().revoke(kLocalTenant, id, 1).ok());
  EXPECT_NE(refusal().message().find("revoked"), std::string::npos);
  EXPECT_FALSE(in_force(key));
}

TEST_F(KeyFileTest, KeyOfAnotherTenantIsRefused) {
  TenantId other = catalog_->tenants().insert("other", 1).value();
  std::string key = draw_key();
  KeyRow row{.id = "k", .tenant = other, .name = "x", .hash = sha256(key).bytes()};
  ASSERT_TRUE(catalog_->keys().insert(row).ok());
  ASSERT_TRUE(replace_file(path_, key, 0600).ok());
  EXPECT_NE(refusal().message().find("another tenant"), std::string::npos);
}

}  // namespace
}  // namespace atl::store
