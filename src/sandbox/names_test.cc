#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr store::TenantId kTenant = store::kLocalTenant;

CreateSandbox named(const TestBed& bed, OnNameConflict on_conflict = OnNameConflict::kError) {
  CreateSandbox request = bed.create_request();
  request.name = "build";
  request.on_name_conflict = on_conflict;
  return request;
}

// As many creates at once, in one thread's turns as in atolld's.
std::vector<Result<Created>> create_at_once(TestBed& bed, CreateSandbox request, size_t count) {
  std::vector<Result<Created>> results;
  auto keep = [&]() -> Task<void> {
    auto created = co_await bed.sandboxes().create(kTenant, request);
    results.push_back(std::move(created));
  };
  // detached: owned by this call, which waits for them
  for (size_t i = 0; i < count; ++i) spawn(bed.context().get_executor(), keep());
  while (results.size() < count) bed.step();
  return results;
}

TEST(Names, SandboxIsFoundByItsNameUntilItIsDeleted) {
  TestBed bed;
  auto created = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(bed.sandboxes().find_named(kTenant, "build"), created->sandbox);
  EXPECT_EQ(bed.sandboxes().find_named(kTenant, "buil"), nullptr);
  EXPECT_EQ(bed.sandboxes().find_named(*store::TenantId::from_number(2), "build"), nullptr);
  auto again = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().reason(), "name_taken");
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(kTenant, created->sandbox->id())).ok());
  EXPECT_EQ(bed.sandboxes().find_named(kTenant, "build"), nullptr);
  EXPECT_TRUE(bed.run(bed.sandboxes().create(kTenant, named(bed))).ok());
}

TEST(Names, OfCreatesAtOnceExactlyOneGetsTheName) {
  TestBed bed;
  size_t made = 0;
  for (auto& result : create_at_once(bed, named(bed), 8)) {
    made += result.ok() ? 1 : 0;
    EXPECT_TRUE(result.ok() || result.error().reason() == "name_taken");
  }
  EXPECT_EQ(made, 1u);
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
  EXPECT_EQ(bed.admission().promised().sandboxes, 1u);
}

TEST(Names, GetOrCreateAtOnceGivesAllTheSameRunningSandbox) {
  TestBed bed;
  size_t made = 0;
  std::shared_ptr<Sandbox> first;
  for (auto& result : create_at_once(bed, named(bed, OnNameConflict::kUse), 8)) {
    ASSERT_TRUE(result.ok());
    if (!first) first = result->sandbox;
    EXPECT_EQ(result->sandbox, first);
    EXPECT_EQ(result->sandbox->state(), State::kRunning);
    made += result->origin == Created::Origin::kMade ? 1 : 0;
  }
  EXPECT_EQ(made, 1u);
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
}

TEST(Names, WhoWaitedForACreateThatFailedMakesItsOwn) {
  TestBed bed;
  bed.driver->next_launch_error = Error(Code::kUnavailable, "no luck");
  size_t made = 0, failed = 0;
  for (auto& result : create_at_once(bed, named(bed, OnNameConflict::kUse), 4)) {
    failed += result.ok() ? 0 : 1;
    if (result) made += result->origin == Created::Origin::kMade ? 1 : 0;
  }
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(made, 1u);
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
}

TEST(Names, SandboxOfAnotherTemplateOrThatFailedIsNotUsed) {
  TestBed bed;
  auto created = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_TRUE(created.ok());
  CreateSandbox other = named(bed, OnNameConflict::kUse);
  other.template_name = "cobol";
  EXPECT_EQ(bed.run(bed.sandboxes().create(kTenant, other)).error().reason(), "name_conflict");
  bed.driver->kill_agent(created->sandbox->id());
  while (created->sandbox->state() != State::kFailed) bed.step();
  auto use = named(bed, OnNameConflict::kUse);
  EXPECT_EQ(bed.run(bed.sandboxes().create(kTenant, use)).error().reason(), "name_taken");
}

TEST(Names, AreTakenUpAfterARestart) {
  TestBed bed;
  auto created = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_TRUE(created.ok());
  SandboxId id = created->sandbox->id();
  created->sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  ASSERT_NE(bed.sandboxes().find_named(kTenant, "build"), nullptr);
  EXPECT_EQ(bed.sandboxes().find_named(kTenant, "build")->id(), id);
  EXPECT_FALSE(bed.run(bed.sandboxes().create(kTenant, named(bed))).ok());
}

// A deletion that could not be finished does not hold the name, also not for the next atolld.
TEST(Names, AreFreeWhileADeletionIsUnfinished) {
  TestBed bed;
  auto created = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_TRUE(created.ok());
  bed.driver->remove_error = Error(Code::kUnavailable, "stuck");
  EXPECT_FALSE(bed.run(bed.sandboxes().remove(kTenant, created->sandbox->id())).ok());
  auto second = bed.run(bed.sandboxes().create(kTenant, named(bed)));
  ASSERT_TRUE(second.ok());
  SandboxId id = second->sandbox->id();
  created->sandbox.reset();
  second->sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  ASSERT_NE(bed.sandboxes().find_named(kTenant, "build"), nullptr);
  EXPECT_EQ(bed.sandboxes().find_named(kTenant, "build")->id(), id);
}

}  // namespace
}  // namespace atl::sandbox
