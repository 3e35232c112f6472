#include "store/artifacts.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/media_type.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr int64_t kNow = 1'800'000'000'000;

void add(Artifacts::Collection& collection, const std::string& name, const std::string& bytes) {
  ASSERT_TRUE(collection.begin(bytes.size()).ok());
  ASSERT_TRUE(collection.append(bytes).ok());
  collection.end({name, bytes.size(), "text/plain", 5, sha256(bytes)});
}

TEST(Artifacts, AreListedForTheirTenantUntilTheyExpire) {
  TestDirectory directory;
  auto artifacts = Artifacts::open(directory.path() + "/kept", 1000);
  ASSERT_TRUE(artifacts.ok());
  SandboxId id = SandboxId::draw();
  {
    auto collection = artifacts->collect(id);
    add(collection, "a.txt", "hello");
    add(collection, "deep/\xff", "x");
    ASSERT_TRUE(collection.keep(kLocalTenant, kNow).ok());
  }
  EXPECT_EQ(artifacts->used_bytes(), 6u);
  // As a new start sees it.
  auto again = Artifacts::open(directory.path() + "/kept", 1000);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->used_bytes(), 6u);
  auto listed = again->list(kLocalTenant, id, kNow + 1000);
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[1].name, "deep/\xff");
  EXPECT_EQ((*listed)[0].sha256, sha256("hello"));
  auto fd = again->open_bytes(id, 0);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(*read_all(fd->get()), "hello");
  EXPECT_TRUE(again->list(*TenantId::from_number(77), id, kNow)->empty());
  EXPECT_TRUE(again->list(kLocalTenant, id, kNow + kArtifactTimeMs)->empty());

  ASSERT_TRUE(again->sweep(kNow + 1000).ok());
  EXPECT_EQ(again->used_bytes(), 6u);
  ASSERT_TRUE(again->sweep(kNow + kArtifactTimeMs).ok());
  EXPECT_EQ(again->used_bytes(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path() + "/kept"));
}

TEST(Artifacts, WhatIsNotKeptLeavesNothing) {
  TestDirectory directory;
  auto artifacts = Artifacts::open(directory.path() + "/kept", 1000);
  ASSERT_TRUE(artifacts.ok());
  {
    auto collection = artifacts->collect(SandboxId::draw());
    add(collection, "a.txt", "hello");
    EXPECT_EQ(artifacts->used_bytes(), 5u);
  }
  EXPECT_EQ(artifacts->used_bytes(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path() + "/kept"));
}

TEST(Artifacts, ACrashInTheMiddleLeavesNothing) {
  TestDirectory directory;
  std::string path = directory.path() + "/kept";
  std::filesystem::create_directories(path + "/" + SandboxId::draw().string() + ".partial/0");
  auto artifacts = Artifacts::open(path, 1000);
  ASSERT_TRUE(artifacts.ok());
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(Artifacts, TheBudgetOfTheHostHolds) {
  TestDirectory directory;
  auto artifacts = Artifacts::open(directory.path() + "/kept", 8);
  ASSERT_TRUE(artifacts.ok());
  auto collection = artifacts->collect(SandboxId::draw());
  add(collection, "a", "12345");
  EXPECT_FALSE(collection.begin(4).ok());
  ASSERT_TRUE(collection.keep(kLocalTenant, kNow).ok());
  EXPECT_EQ(artifacts->used_bytes(), 5u);
  EXPECT_FALSE(artifacts->collect(SandboxId::draw()).begin(4).ok());
}

TEST(MediaType, FollowsTheNameThenTheFirstBytes) {
  EXPECT_EQ(media_type("a.PNG", ""), "image/png");
  EXPECT_EQ(media_type("plot", "\x89PNG\r\n\x1a\n..."), "image/png");
  EXPECT_EQ(media_type("notes", "gr\xc3\xbc\xc3"), "text/plain");
  EXPECT_EQ(media_type("blob", std::string_view("a\0b", 3)), "application/octet-stream");
  EXPECT_EQ(media_type("empty", ""), "application/octet-stream");
}

}  // namespace
}  // namespace atl::store
