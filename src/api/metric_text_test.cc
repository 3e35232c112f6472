#include "api/metric_text.h"

#include <gtest/gtest.h>

namespace atl::api {
namespace {

using Kind = MetricText::Kind;

TEST(MetricText, WritesAFamilyAndItsSamples) {
  MetricText text;
  text.begin(Kind::kCounter, "execs_total", "Execs that have ended.");
  text.sample(3, {{"verdict", "ok"}, {"scope", "all"}});
  text.add(Kind::kGauge, "bytes", "Held.", 8589934592.0);
  EXPECT_EQ(text.take(),
            "# HELP execs_total Execs that have ended.\n# TYPE execs_total counter\n"
            "execs_total{verdict=\"ok\",scope=\"all\"} 3\n"
            "# HELP bytes Held.\n# TYPE bytes gauge\nbytes 8589934592\n");
}

TEST(MetricText, ALabelCannotEndItsLine) {
  MetricText text;
  text.begin(Kind::kGauge, "a", "b");
  text.sample(1, {{"name", "x\"} 1\ny\\"}});
  EXPECT_NE(text.take().find("a{name=\"x\\\"} 1\\ny\\\\\"} 1\n"), std::string::npos);
}

TEST(MetricText, BucketsOfAHistogramAreCumulative) {
  sandbox::Histogram histogram;
  histogram.add(std::chrono::milliseconds(2));
  histogram.add(std::chrono::milliseconds(60'000));
  MetricText text;
  text.add("wait_seconds", "Waited.", histogram);
  std::string written = text.take();
  EXPECT_NE(written.find("# TYPE wait_seconds histogram\nwait_seconds_bucket{le=\"0.001\"} 0\n"
                         "wait_seconds_bucket{le=\"0.0025\"} 1\n"),
            std::string::npos)
      << written;
  EXPECT_NE(written.find("wait_seconds_bucket{le=\"30\"} 1\nwait_seconds_bucket{le=\"+Inf\"} 2\n"
                         "wait_seconds_sum 60.002\nwait_seconds_count 2\n"),
            std::string::npos)
      << written;
}

}  // namespace
}  // namespace atl::api
