#include "sandbox/tally.h"

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using std::chrono::microseconds;

constexpr size_t kAll = Histogram::kBoundSeconds.size();

TEST(Histogram, CountsWhatIsNoLongerThanABound) {
  Histogram histogram;
  histogram.add(microseconds(1000));  // the first bound itself
  histogram.add(microseconds(1001));
  histogram.add(microseconds(3'600'000'000));
  EXPECT_EQ(histogram.up_to(0), 1u);
  EXPECT_EQ(histogram.up_to(1), 2u);
  EXPECT_EQ(histogram.up_to(kAll - 1), 2u);
  EXPECT_EQ(histogram.up_to(kAll), 3u);
  EXPECT_NEAR(histogram.sum_seconds(), 3600.002001, 1e-9);
}

TEST(Tally, CountsCreatesThatWorkedAndThoseThatDidNot) {
  TestBed bed;
  const Tally& tally = bed.sandboxes().services().tally;
  bed.create();
  EXPECT_EQ(tally.create_time.up_to(kAll), 1u);
  EXPECT_EQ(tally.failed_creates, 0u);

  CreateSandbox request = bed.create_request();
  request.template_name = "no-such-template";
  ASSERT_FALSE(bed.run(bed.sandboxes().create(store::kLocalTenant, request)).ok());
  EXPECT_EQ(tally.create_time.up_to(kAll), 1u);
  EXPECT_EQ(tally.failed_creates, 1u);
}

TEST(Tally, ASandboxThatIsFoundByItsNameIsNotMadeAgain) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.name = "one";
  request.on_name_conflict = OnNameConflict::kUse;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(bed.run(bed.sandboxes().create(store::kLocalTenant, request)).ok());
  EXPECT_EQ(bed.sandboxes().services().tally.create_time.up_to(kAll), 1u);
}

TEST(Tally, CountsEachExecOnceByItsVerdict) {
  TestBed bed;
  auto sandbox = bed.create();
  bed.run_exec(*sandbox, {"echo", "a"});
  bed.run_exec(*sandbox, {"exit", "3"});
  bed.start_exec(*sandbox, {"hang"});
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, sandbox->id())).ok());
  const Tally& tally = bed.sandboxes().services().tally;
  std::map<std::string, uint64_t, std::less<>> expected = {
      {"nonzero", 1}, {"ok", 1}, {"sandbox_gone", 1}};
  EXPECT_EQ(tally.execs, expected);
  EXPECT_EQ(tally.exec_start_time.up_to(kAll), 2u);
}

}  // namespace
}  // namespace atl::sandbox
