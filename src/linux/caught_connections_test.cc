#include "linux/caught_connections.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string>

#include <gtest/gtest.h>

#include "linux/network.h"

namespace atl::linux {
namespace {

constexpr std::array<unsigned char, 4> kOwn = {198, 18, 0, 1};

sockaddr_in address(const char* text, uint16_t port) {
  sockaddr_in made = {};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  inet_pton(AF_INET, text, &made.sin_addr);
  return made;
}

Fd listen_on(const char* text, uint16_t port) {
  Fd made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_in at = address(text, port);
  if (bind(made.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return {};
  return listen(made.get(), 16) == 0 ? std::move(made) : Fd();
}

// 0, or the errno.
int connect_to(const char* text, uint16_t port, Fd& made) {
  made = Fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to = address(text, port);
  return connect(made.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
}

// Where the one connection that waits wanted to go; empty: none waits.
std::string wanted(const Fd& listener) {
  Fd accepted(accept(listener.get(), nullptr, nullptr));
  if (!accepted) return "";
  sockaddr_in own = {};
  socklen_t bytes = sizeof own;
  getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
  return std::string(inet_ntoa(own.sin_addr)) + ":" + std::to_string(ntohs(own.sin_port));
}

// What is wrong, if anything.
std::string try_out() {
  if (!raise_interface("lo")) return "lo";
  auto owned = own_all_addresses(kOwn);
  if (!owned) return owned.error().message();
  Fd listener = listen_on("0.0.0.0", 1), own = listen_on("198.18.0.1", 8000);
  Fd loopback = listen_on("127.0.0.1", 8000);
  if (!listener || !own || !loopback) return "listen";
  auto catcher = catch_connections(kOwn, listener.get());
  if (!catcher) return catcher.error().message();
  Fd client;
  for (const char* elsewhere : {"198.18.1.0", "20.0.0.80", "192.0.2.1"})
    for (uint16_t port : {80, 8000, 65535}) {
      if (connect_to(elsewhere, port, client) != 0) return elsewhere;
      std::string seen = wanted(listener);
      if (seen != std::string(elsewhere) + ":" + std::to_string(port)) return "it saw " + seen;
    }
  if (connect_to("198.18.0.1", 8000, client) != 0 || wanted(own).empty()) return "the own address";
  if (connect_to("127.0.0.1", 8000, client) != 0 || wanted(loopback).empty()) return "loopback";
  if (connect_to("127.0.0.1", 81, client) != ECONNREFUSED) return "a closed port of loopback";
  catcher->reset();
  if (connect_to("20.0.0.80", 80, client) != ECONNREFUSED) return "it is still caught";
  return "";
}

TEST(CaughtConnections, AllButOwnOnesComeToOneSocketAndSayWhereTheyWanted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    std::string wrong = unshare(CLONE_NEWNET) == 0 ? try_out() : "unshare";
    _exit(write(ends[1], wrong.data(), wrong.size()) < 0 ? 2 : 0);
  }
  close(ends[1]);
  char text[4096];
  ssize_t count = read(ends[0], text, sizeof text);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::string(text, count > 0 ? static_cast<size_t>(count) : 0), "");
}

}  // namespace
}  // namespace atl::linux
