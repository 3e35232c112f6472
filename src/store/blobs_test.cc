#include "store/blobs.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class BlobsTest : public testing::Test {
 protected:
  std::string get(const Digest& name) {
    auto file = blobs_->open(name);
    return file ? read_all(file->get(), 1000).value() : "nothing";
  }
  size_t collect(const std::set<Digest>& named) {
    return BlobKeeper::Collection(keeper_).run(named).value();
  }

  TestDirectory directory_;
  std::unique_ptr<DirectoryBlobs> blobs_ = DirectoryBlobs::open(directory_ / "blobs", 0).value();
  BlobKeeper keeper_{*blobs_};
  Digest a_ = sha256("a"), b_ = sha256("b");
};

TEST_F(BlobsTest, ArePutOnceAndFoundByName) {
  EXPECT_EQ(blobs_->put(a_, "a").value(), Blobs::Put::kNew);
  EXPECT_EQ(blobs_->put(a_, "a").value(), Blobs::Put::kThere);
  EXPECT_EQ(blobs_->put(b_, "b").value(), Blobs::Put::kNew);
  EXPECT_EQ(get(a_), "a");
  EXPECT_EQ(blobs_->list().value().size(), 2u);
  EXPECT_TRUE(blobs_->sync().ok());
  EXPECT_TRUE(blobs_->remove(a_).ok());
  EXPECT_TRUE(blobs_->remove(a_).ok());
  EXPECT_EQ(blobs_->open(a_).error().code(), Code::kNotFound);
  EXPECT_EQ(get(b_), "b");
}

TEST_F(BlobsTest, OpeningRemovesWhatWasNotFinished) {
  std::string draft = directory_ / "blobs/00/x.partial";
  ASSERT_TRUE(replace_file(draft, "half", 0600).ok());
  ASSERT_TRUE(blobs_->put(a_, "a").ok());
  auto again = DirectoryBlobs::open(directory_ / "blobs", 0);
  EXPECT_FALSE(std::filesystem::exists(draft));
  EXPECT_EQ(get(a_), "a");
}

TEST_F(BlobsTest, LeaveTheHostItsRoom) {
  auto greedy = DirectoryBlobs::open(directory_ / "blobs", UINT64_MAX / 2).value();
  EXPECT_EQ(greedy->put(a_, "a").error().reason(), "disk_full");
  EXPECT_TRUE(greedy->list().value().empty());
}

TEST_F(BlobsTest, GarbageIsWhatNobodyNamesOrHolds) {
  auto hold = std::make_unique<BlobKeeper::Hold>(keeper_);
  ASSERT_TRUE(hold->put(a_, "a").ok());
  ASSERT_TRUE(blobs_->put(b_, "b").ok());
  EXPECT_EQ(collect({}), 1u);
  EXPECT_EQ(get(a_), "a");
  EXPECT_EQ(get(b_), "nothing");
  hold.reset();
  EXPECT_EQ(collect({a_}), 0u);
  EXPECT_EQ(collect({}), 1u);
  EXPECT_EQ(get(a_), "nothing");
}

TEST_F(BlobsTest, WhatIsHeldTwiceIsHeldUntilBothLetGo) {
  ASSERT_TRUE(blobs_->put(a_, "a").ok());
  BlobKeeper::Hold first(keeper_);
  first.add(a_);
  first.add(a_);
  {
    BlobKeeper::Hold second(keeper_);
    second.add(a_);
  }
  EXPECT_EQ(collect({}), 0u);
}

TEST_F(BlobsTest, WhatGotItsNameDuringACollectionStays) {
  auto hold = std::make_unique<BlobKeeper::Hold>(keeper_);
  ASSERT_TRUE(hold->put(a_, "a").ok());
  {
    // The names were asked for before the row was stored, and the hold ended after that.
    BlobKeeper::Collection collection(keeper_);
    hold.reset();
    EXPECT_EQ(collection.run({}).value(), 0u);
  }
  EXPECT_EQ(get(a_), "a");
}

}  // namespace
}  // namespace atl::store
