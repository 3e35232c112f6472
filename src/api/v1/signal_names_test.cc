#include "api/v1/signal_names.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace atl::api::v1 {
namespace {

TEST(SignalNames, EverySignalHasAName) {
  EXPECT_EQ(signal_number("TERM"), SIGTERM);
  EXPECT_EQ(signal_number("SIGTERM"), SIGTERM);
  EXPECT_EQ(signal_number("15"), 15);
  EXPECT_EQ(signal_number("1"), 1);
  EXPECT_EQ(signal_number("64"), 64);
  EXPECT_EQ(signal_number("RTMIN"), SIGRTMIN);
  EXPECT_EQ(signal_number("RTMIN+1"), SIGRTMIN + 1);
  EXPECT_EQ(signal_number("SIGRTMAX-2"), SIGRTMAX - 2);
  EXPECT_EQ(signal_number("RTMIN+30"), 64);
}

TEST(SignalNames, NothingElseIsASignal) {
  for (std::string_view name :
       {"", "0", "65", "-1", "+1", "1 ", "term", "SIG", "SIGSIGTERM", "NOPE", "RTMIN+", "RTMIN+31",
        "RTMIN+-1", "RTMAX-31", "RTMAX+1", "99999999999999", "15.0"})
    EXPECT_FALSE(signal_number(name).has_value()) << name;
}

}  // namespace
}  // namespace atl::api::v1
