#include "agent/file_draft.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;

class FileDraftTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/atoll-draft-test-XXXXXX";
    path_ = mkdtemp(path);
    directory_ = Fd(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(path_); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_))
      all.push_back(entry.path().filename().string());
    return all;
  }
  Result<Published> write(const std::string& bytes, Existing existing) {
    ATOLL_TRY(FileDraft draft, FileDraft::create(directory_.get(), "name"));
    ATOLL_TRY_VOID(draft.append(bytes));
    return draft.publish(directory_.get(), "name", existing);
  }

  std::string path_;
  Fd directory_;
};

TEST_F(FileDraftTest, HasNoNameUntilItIsPublished) {
  {
    auto draft = FileDraft::create(directory_.get(), "name");
    ASSERT_TRUE(draft.ok());
    EXPECT_TRUE(draft->append("x").ok());
    EXPECT_EQ(names(), std::vector<std::string>{});
  }
  EXPECT_EQ(*write("one", Existing::kKeep), Published::kNew);
  EXPECT_EQ(write("two", Existing::kKeep).error().system_errno(), EEXIST);
  EXPECT_EQ(*write("two", Existing::kReplace), Published::kReplaced);
  EXPECT_EQ(*read_file(path_ + "/name"), "two");
  EXPECT_EQ(names(), std::vector<std::string>{"name"});
}

TEST_F(FileDraftTest, TakesOverWhatAKilledOneLeft) {
  ASSERT_TRUE(write("old", Existing::kKeep).ok());
  std::string left = path_ + "/" + hidden_name("name", 0);
  Fd file(open(left.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  // While one is at work its name is left alone.
  ASSERT_EQ(flock(file.get(), LOCK_EX), 0);
  ASSERT_TRUE(write("new", Existing::kReplace).ok());
  EXPECT_TRUE(fs::exists(left));
  file.reset();
  ASSERT_TRUE(write("newer", Existing::kReplace).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"name"});
  EXPECT_EQ(*read_file(path_ + "/name"), "newer");
}

TEST_F(FileDraftTest, NeverReplacesADirectory) {
  fs::create_directory(path_ + "/name");
  EXPECT_EQ(write("x", Existing::kReplace).error().system_errno(), EISDIR);
  EXPECT_EQ(names(), std::vector<std::string>{"name"});
}

}  // namespace
}  // namespace atl::agent
