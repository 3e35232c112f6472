#include "cli/listen_address.h"

#include <sys/socket.h>

#include <netinet/in.h>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace atl::cli {
namespace {

TEST(ListenAddress, ReadsBothFamiliesAndWritesThemBack) {
  for (const char* text : {"127.0.0.1:4700", "[::1]:4700", "0.0.0.0:0"})
    EXPECT_EQ(ListenAddress::parse(text).value().string(), text);
}

TEST(ListenAddress, RefusesNamesBareIpv6AndBadPorts) {
  for (const char* text :
       {"", "4700", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+1", "127.0.0.1:47x",
        "localhost:4700", "::1:4700", "[127.0.0.1]:4700", "127.0.0.1 :4700", "[]:1"})
    EXPECT_FALSE(ListenAddress::parse(text).ok()) << text;
}

TEST(ListenAddress, OnlyLoopbackIsLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1"})
    EXPECT_TRUE(ListenAddress::parse(text).value().is_loopback()) << text;
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "128.0.0.1:1", "[::]:1", "[fe80::1]:1"})
    EXPECT_FALSE(ListenAddress::parse(text).value().is_loopback()) << text;
}

TEST(ListenAddress, AWildcardIsReachedOnLoopback) {
  EXPECT_EQ(ListenAddress::parse("0.0.0.0:7").value().reachable().string(), "127.0.0.1:7");
  EXPECT_EQ(ListenAddress::parse("[::]:7").value().reachable().string(), "[::1]:7");
  EXPECT_EQ(ListenAddress::parse("10.1.1.1:7").value().reachable().string(), "10.1.1.1:7");
}

TEST(ListenAddress, IsFreeUntilSomebodyListens) {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ListenAddress same{"127.0.0.1", ntohs(address.sin_port)};
  EXPECT_EQ(same.check_free().error().code(), Code::kConflict);
  listener.reset();
  EXPECT_TRUE(same.check_free().ok());
}

}  // namespace
}  // namespace atl::cli
