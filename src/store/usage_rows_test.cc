#include "store/usage_rows.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class UsageTest : public ::testing::Test {
 protected:
  SandboxRow make_sandbox(TenantId tenant, int64_t created_at_ms) {
    SandboxRow row{.id = SandboxId::draw(), .tenant = tenant, .image = *image_};
    row.created_at_ms = created_at_ms;
    EXPECT_TRUE(catalog_->sandboxes().insert(row).ok());
    EXPECT_TRUE(catalog_->sandboxes().set_state(tenant, row.id, "running", "").ok());
    return row;
  }
  // One that has ended and used the same of each thing.
  Result<void> end_exec(const SandboxRow& sandbox, uint64_t figure) {
    ATOLL_TRY(ExecId id, catalog_->execs().insert(sandbox.tenant, sandbox.id, "{}", 1));
    ExecRow row{.sandbox = sandbox.id, .tenant = sandbox.tenant, .id = id, .verdict = "ok"};
    row.user_us = row.system_us = row.wall_us = figure;
    row.stdout_bytes = row.stderr_bytes = row.read_bytes = row.written_bytes = figure;
    return catalog_->execs().finish(row);
  }

  TestDirectory directory_;
  std::optional<Digest> image_ = Digest::parse(std::string(64, 'a'));
  std::unique_ptr<Catalog> catalog_ = Catalog::open(directory_ / "atoll.db").value();
};

TEST_F(UsageTest, TotalsOutliveTheSandbox) {
  SandboxRow gone = make_sandbox(kLocalTenant, 70);
  SandboxRow kept = make_sandbox(kLocalTenant, 80);
  ASSERT_TRUE(end_exec(gone, 5000).ok());
  ASSERT_TRUE(end_exec(kept, 100).ok());
  ASSERT_TRUE(catalog_->execs().insert(kLocalTenant, kept.id, "{}", 1).ok());  // it runs
  ASSERT_TRUE(catalog_->sandboxes().remove(kLocalTenant, gone.id).ok());

  Usage all = catalog_->usage().of_tenant(kLocalTenant).value();
  EXPECT_EQ(all.since_ms, 70);
  EXPECT_EQ(all.sandboxes, 2u);
  EXPECT_EQ(all.execs, 2u);
  EXPECT_EQ(all.cpu_us, 10'200u);
  EXPECT_EQ(all.wall_us, 5100u);
  EXPECT_EQ(all.output_bytes, 10'200u);
  EXPECT_EQ(all.read_bytes, 5100u);
  EXPECT_EQ(all.written_bytes, 5100u);

  Usage one = catalog_->usage().of_sandbox(kLocalTenant, kept.id).value();
  EXPECT_EQ(one.since_ms, 80);
  EXPECT_EQ(one.execs, 1u);
  EXPECT_EQ(one.cpu_us, 200u);
  EXPECT_EQ(catalog_->usage().of_sandbox(kLocalTenant, gone.id)->sandboxes, 0u);
}

TEST_F(UsageTest, ASandboxThatWaitedInThePoolCounts) {
  SandboxRow row{.id = SandboxId::draw(), .tenant = kLocalTenant, .image = *image_};
  row.state = "running";
  row.created_at_ms = 70;
  ASSERT_TRUE(catalog_->sandboxes().insert(row).ok());
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->sandboxes, 1u);
  ASSERT_TRUE(catalog_->sandboxes().set_state(kLocalTenant, row.id, "running", "").ok());
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->sandboxes, 1u);
}

TEST_F(UsageTest, ASandboxWithoutExecsHasUsedNothing) {
  SandboxRow row = make_sandbox(kLocalTenant, 80);
  Usage usage = catalog_->usage().of_sandbox(kLocalTenant, row.id).value();
  EXPECT_EQ(usage.sandboxes, 1u);
  EXPECT_EQ(usage.execs, 0u);
  EXPECT_EQ(usage.cpu_us, 0u);
}

TEST_F(UsageTest, TenantsPayForThemselves) {
  TenantId other = catalog_->tenants().insert("other", 1).value();
  SandboxRow theirs = make_sandbox(other, 1);
  ASSERT_TRUE(end_exec(theirs, 5000).ok());
  EXPECT_EQ(catalog_->usage().of_tenant(other)->execs, 1u);
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->since_ms, 0);
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->execs, 0u);
  EXPECT_EQ(catalog_->usage().of_sandbox(kLocalTenant, theirs.id)->sandboxes, 0u);
}

TEST_F(UsageTest, AVerdictIsCountedOnce) {
  SandboxRow row = make_sandbox(kLocalTenant, 1);
  ASSERT_TRUE(end_exec(row, 1).ok());
  ExecRow again{.sandbox = row.id, .tenant = kLocalTenant, .id = *ExecId::from_number(1)};
  again.verdict = "ok";
  EXPECT_EQ(catalog_->execs().finish(again).error().code(), Code::kConflict);
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->execs, 1u);
}

// The figures are what an agent says.
TEST_F(UsageTest, FiguresBeyondReasonDoNotKeepAVerdictFromBeingStored) {
  SandboxRow row = make_sandbox(kLocalTenant, 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(end_exec(row, INT64_MAX).ok()) << i;
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->execs, 100u);
  EXPECT_EQ(catalog_->usage().of_tenant(kLocalTenant)->cpu_us, 9'000'000'000'000'000'000u);
  EXPECT_EQ(catalog_->usage().of_sandbox(kLocalTenant, row.id)->cpu_us, uint64_t{INT64_MAX});
}

}  // namespace
}  // namespace atl::store
