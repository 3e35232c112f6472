#include "daemon/options.h"

#include <chrono>

#include <gtest/gtest.h>

namespace atl::daemon {
namespace {

Result<Options> parse(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"--state-dir", "/s", "--run-dir", "/r"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return parse_options(arguments);
}

TEST(Options, ListensOnLoopbackByDefault) {
  auto options = parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->listen_address, "127.0.0.1");
  EXPECT_EQ(options->listen_port, 4700);
  EXPECT_EQ(options->state_directory, "/s");
  EXPECT_EQ(options->run_directory, "/r");
}

TEST(Options, OtherMachinesAreLetInOnlyWhenAskedFor) {
  for (const char* address : {"0.0.0.0:4700", "10.0.0.1:80", "[::]:4700", "[fe80::1]:1"}) {
    auto refused = parse({"--listen", address});
    ASSERT_FALSE(refused.ok()) << address;
    EXPECT_NE(refused.error().message().find("--allow-remote"), std::string::npos) << address;
    EXPECT_TRUE(parse({"--listen", address, "--allow-remote"}).ok()) << address;
  }
  for (const char* address : {"127.0.0.1:0", "127.9.9.9:1", "[::1]:4700"})
    EXPECT_TRUE(parse({"--listen", address}).ok()) << address;
}

TEST(Options, GvisorMayBeHeldToOnePlatform) {
  EXPECT_FALSE(parse({})->gvisor_platform);
  EXPECT_EQ(parse({"--gvisor-platform", "systrap"})->gvisor_platform, isolate::Platform::kSystrap);
  EXPECT_EQ(parse({"--gvisor-platform", "ptrace"})->gvisor_platform, isolate::Platform::kPtrace);
  EXPECT_FALSE(parse({"--gvisor-platform", "kvm"}).ok());
}

TEST(Options, TlsNeedsAnAddressACertificateAndAKey) {
  auto options = parse({"--tls-listen", "127.0.0.1:8443", "--tls-certificate", "/c", "--tls-key",
                        "/k", "--domain", "boxes.test"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->tls_listen.port, 8443);
  EXPECT_TRUE(options->host_names.contains("boxes.test"));
  EXPECT_TRUE(options->host_names.contains("api.boxes.test"));
  EXPECT_FALSE(parse({"--tls-listen", "127.0.0.1:1"}).ok());
  EXPECT_FALSE(parse({"--tls-certificate", "/c", "--tls-key", "/k"}).ok());
  EXPECT_FALSE(
      parse({"--tls-listen", "0.0.0.0:1", "--tls-certificate", "/c", "--tls-key", "/k"}).ok());
}

TEST(Options, SlowPeersMayBeGivenLessTime) {
  using std::chrono::milliseconds;
  EXPECT_EQ(parse({})->http_limits.body_time, http::Limits{}.body_time);
  auto options = parse({"--slow-peer-time", "1500"});
  ASSERT_TRUE(options.ok());
  const http::Limits& limits = options->http_limits;
  for (milliseconds time :
       {limits.header_time, limits.body_time, limits.whole_body_time, limits.write_time})
    EXPECT_EQ(time, milliseconds(1500));
  for (const char* time : {"0", "600001", "x"})
    EXPECT_FALSE(parse({"--slow-peer-time", time}).ok()) << time;
}

TEST(Options, TrafficHasLimits) {
  auto options = parse({"--request-rate", "0", "--max-streams", "7"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->traffic.requests_per_second, 0u);
  EXPECT_EQ(options->traffic.long_requests, 7u);
  EXPECT_EQ(parse({})->traffic.requests_per_second, 10'000u);
}

TEST(Options, RefusesWhatItDoesNotUnderstand) {
  for (std::vector<std::string> bad :
       std::vector<std::vector<std::string>>{{"--listen", "127.0.0.1"},
                                             {"--listen", "localhost:1"},
                                             {"--listen", "127.0.0.1:65536"},
                                             {"--listen", "127.0.0.1:-1"},
                                             {"--listen", "127.0.0.1:1x"},
                                             {"--listen"},
                                             {"--verbose"},
                                             {"extra"},
                                             {"--max-sandboxes", "many"},
                                             {"--memory-budget", "-1"}})
    EXPECT_FALSE(parse(bad).ok()) << bad[0];
  EXPECT_FALSE(parse_options({"--state-dir", "/s"}).ok());
  EXPECT_FALSE(parse_options({"--run-dir", "/r"}).ok());
}

TEST(Options, ReadsBudgetsAndHostNames) {
  auto options = parse({"--max-sandboxes", "7", "--memory-budget", "1000", "--disk-budget", "2000",
                        "--log-budget", "3000", "--host-name", "a.example", "--host-name", "b"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->max_sandboxes, 7u);
  EXPECT_EQ(options->memory_budget_bytes, 1000u);
  EXPECT_EQ(options->disk_budget_bytes, 2000u);
  EXPECT_EQ(options->log_budget_bytes, 3000u);
  EXPECT_EQ(options->host_names.size(), 2u);
}

}  // namespace
}  // namespace atl::daemon
