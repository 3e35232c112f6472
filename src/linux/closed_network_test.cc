#include "linux/closed_network.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <vector>

#include <gtest/gtest.h>

#include "linux/open_ranges.h"

namespace atl::linux {
namespace {

constexpr ClosedNetwork kNetwork = {
    .own_v4 = {198, 18, 0, 1},
    .range_v4 = {198, 18, 0, 0},
    .range_v4_bits = 15,
    .own_v6 = {0xfd, 0, 0xa7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
    .range_v6 = {0xfd, 0, 0xa7, 1},
    .range_v6_bits = 32,
    .connection_port = 1,
    .dns_port = 53,
    .proxy_port = 3128};

// In a process and a network namespace of its own; the text is what is wrong, if anything.
std::string run_closed(const std::function<std::string()>& work) {
  if (geteuid() != 0) return "needs root";
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    std::string wrong = unshare(CLONE_NEWNET) == 0 ? work() : "unshare";
    if (write(ends[1], wrong.data(), wrong.size()) < 0) _exit(2);
    _exit(0);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  ssize_t count = read(ends[0], text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : text + " died";
}

struct Destination {
  sockaddr_storage address = {};
  socklen_t bytes = 0;
};

Destination destination(const char* text, uint16_t port) {
  Destination made;
  auto* six = reinterpret_cast<sockaddr_in6*>(&made.address);
  auto* four = reinterpret_cast<sockaddr_in*>(&made.address);
  if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    made.bytes = sizeof *six;
  } else {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    inet_pton(AF_INET, text, &four->sin_addr);
    made.bytes = sizeof *four;
  }
  return made;
}

// 0 or errno.
int try_connect(const char* text, uint16_t port, int type = SOCK_STREAM) {
  Destination to = destination(text, port);
  Fd made(socket(to.address.ss_family, type | SOCK_CLOEXEC, 0));
  if (connect(made.get(), reinterpret_cast<sockaddr*>(&to.address), to.bytes) != 0) return errno;
  if (type == SOCK_STREAM) return 0;
  if (send(made.get(), "x", 1, 0) != 1) return errno;
  char byte;
  return recv(made.get(), &byte, 1, MSG_DONTWAIT) < 0 ? errno : 0;
}

size_t waiting_bytes(const Fd& socket) {
  std::string buffer(65536, '\0');
  size_t total = 0;
  while (true) {
    ssize_t count = recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count <= 0) return total;
    total += static_cast<size_t>(count);
  }
}

TEST(ClosedNetwork, RefusesAllElseAtOnceAndLogsIt) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              auto sockets = make_network_sockets(kNetwork);
              if (!sockets) return sockets.error().message();
              const Fd& refusals = (*sockets)[static_cast<size_t>(NetworkSocket::kRefusals)];
              for (const char* text :
                   {"1.2.3.4", "8.8.8.8", "169.254.169.254", "10.0.0.1", "2606:4700::1111",
                    "::ffff:1.2.3.4", "fe80::1", "64:ff9b::1.2.3.4"}) {
                int error = try_connect(text, 443);
                bool refused = error == ECONNREFUSED || error == EINVAL || error == ENETUNREACH;
                if (!refused) return std::string(text) + ": " + std::to_string(error);
                if (error == ECONNREFUSED && waiting_bytes(refusals) == 0)
                  return std::string(text) + " not logged";
              }
              for (const char* text : {"1.2.3.4", "198.18.5.5", "2606:4700::1111"}) {
                int error = try_connect(text, 443, SOCK_DGRAM);
                if (error != EPERM) return std::string(text) + " " + std::to_string(error);
                if (waiting_bytes(refusals) == 0) return std::string(text) + " not logged";
              }
              return "";
            }),
            "");
}

TEST(ClosedNetwork, HandsConnectionsToNamesToItsSocket) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              auto sockets = make_network_sockets(kNetwork);
              if (!sockets) return sockets.error().message();
              struct Case {
                const char* text;
                uint16_t port;
                NetworkSocket wanted;
              };
              for (const Case& one : {Case{"198.18.1.5", 443, NetworkSocket::kConnections4},
                                      Case{"198.19.255.255", 80, NetworkSocket::kConnections4},
                                      Case{"fd00:a701::105", 22, NetworkSocket::kConnections6},
                                      Case{"8.8.8.8", 53, NetworkSocket::kDnsStream4},
                                      Case{"198.18.0.1", 53, NetworkSocket::kDnsStream4},
                                      Case{"2606:4700::1", 53, NetworkSocket::kDnsStream6}}) {
                int error = try_connect(one.text, one.port);
                if (error != 0) return std::string(one.text) + ": " + std::to_string(error);
                Fd got(accept((*sockets)[static_cast<size_t>(one.wanted)].get(), nullptr, nullptr));
                if (!got) return std::string(one.text) + " arrived elsewhere";
                sockaddr_storage local = {};
                socklen_t bytes = sizeof local;
                getsockname(got.get(), reinterpret_cast<sockaddr*>(&local), &bytes);
                Destination to = destination(one.text, one.port);
                bool same = to.address.ss_family == AF_INET
                                ? std::memcmp(&local, &to.address, 8) == 0
                                : std::memcmp(&local, &to.address, 24) == 0;
                if (!same) return std::string(one.text) + ": the destination is lost";
              }
              return "";
            }),
            "");
}

std::string try_ranges(const Fd& listener, const std::vector<std::string>& open,
                       const std::vector<std::string>& closed) {
  for (const std::string& text : open) {
    int error = try_connect(text.c_str(), 443);
    if (error != 0) return text + " is closed: " + std::to_string(error) + "\n";
    Fd got(accept(listener.get(), nullptr, nullptr));
    if (!got) return text + " arrived elsewhere\n";
  }
  for (const std::string& text : closed)
    if (try_connect(text.c_str(), 443) != ECONNREFUSED) return text + " is open\n";
  return "";
}

OpenRanges open_ranges_of(const std::vector<AddressPrefix>& ranges) {
  OpenRanges open = {};
  for (const AddressPrefix& range : ranges) {
    AddressRange& one = open.list[open.count++];
    one.prefix_bits = static_cast<uint8_t>(range.bits);
    one.address_bytes = static_cast<uint8_t>(range.first.size());
    std::copy(range.first.begin(), range.first.end(), one.first.begin());
  }
  return open;
}

TEST(OpenRanges, EveryFieldIsChecked) {
  const unsigned char ten[] = {10, 0, 0, 0}, eight[16] = {0xfd};
  OpenRanges good = open_ranges_of({{ten, 8}, {eight, 8}});
  EXPECT_TRUE(good.check().ok());
  EXPECT_TRUE(OpenRanges{}.check().ok());
  for (auto spoil :
       {+[](OpenRanges& o) { o.count = 1; }, +[](OpenRanges& o) { o.count = 3; },
        +[](OpenRanges& o) { o.count = 65; }, +[](OpenRanges& o) { o.list[0].prefix_bits = 33; },
        +[](OpenRanges& o) { o.list[0].address_bytes = 5; },
        +[](OpenRanges& o) { o.list[0].reserved[1] = 1; },
        +[](OpenRanges& o) { o.list[0].first[1] = 1; },
        +[](OpenRanges& o) { o.list[1].first[15] = 1; },
        +[](OpenRanges& o) { o.list[63].first[0] = 1; }}) {
    OpenRanges bad = good;
    spoil(bad);
    EXPECT_FALSE(bad.check().ok());
  }
}

TEST(ClosedNetwork, OpensRangesAndNoOthers) {
  EXPECT_EQ(
      run_closed([]() -> std::string {
        if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
        auto sockets = make_network_sockets(kNetwork);
        if (!sockets) return sockets.error().message();
        const Fd& four = (*sockets)[static_cast<size_t>(NetworkSocket::kConnections4)];
        const Fd& six = (*sockets)[static_cast<size_t>(NetworkSocket::kConnections6)];
        const unsigned char ten[] = {10, 0, 0, 0}, ten_nine[] = {10, 9, 0, 0},
                            last[] = {255, 255, 255, 255}, none[] = {0, 0, 0, 0},
                            half[] = {128, 0, 0, 0};
        const unsigned char eight[16] = {0xfd}, all[16] = {};
        std::string wrong;
        auto open = [&](const std::vector<AddressPrefix>& ranges) {
          auto opened = open_ranges(open_ranges_of(ranges));
          if (!opened) wrong += opened.error().message() + "\n";
        };
        open({{ten, 8}, {eight, 8}});
        wrong += try_ranges(four, {"10.0.0.0", "10.255.255.255"}, {"9.255.255.255", "11.0.0.0"});
        wrong += try_ranges(six, {"fdff::1"}, {"fe00::1", "2001:db8::1"});
        // In its place, inside what was open before.
        open({{ten_nine, 16}});
        wrong += try_ranges(four, {"10.9.0.1", "10.9.255.255"}, {"10.8.255.255", "10.10.0.0"});
        wrong += try_ranges(six, {}, {"fdff::1"});
        open({{last, 32}});
        wrong += try_ranges(four, {}, {"10.9.0.1", "255.255.255.254"});
        open({{none, 1}, {half, 1}});
        wrong += try_ranges(four, {"126.255.255.255", "128.0.0.1", "1.2.3.4"}, {});
        open({{none, 0}, {all, 0}});
        wrong += try_ranges(four, {"1.2.3.4", "169.254.169.254", "223.1.1.1"}, {});
        wrong += try_ranges(six, {"2001:db8::1"}, {});
        if (try_connect("1.2.3.4", 443, SOCK_DGRAM) != EPERM) wrong += "udp is open\n";
        open({});
        wrong += try_ranges(four, {}, {"1.2.3.4", "10.9.0.1"});
        return wrong;
      }),
      "");
}

TEST(ClosedNetwork, HandsTheProxyPortToItsSocketWhoeverListensThere) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              auto sockets = make_network_sockets(kNetwork);
              if (!sockets) return sockets.error().message();
              Fd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
              Destination any = destination("0.0.0.0", 3128);
              if (bind(server.get(), reinterpret_cast<sockaddr*>(&any.address), any.bytes) != 0 ||
                  listen(server.get(), 8) != 0)
                return "listen";
              for (const char* text : {"198.18.0.1", "fd00:a701::1"}) {
                if (int error = try_connect(text, 3128); error != 0) return std::to_string(error);
                auto wanted = std::strchr(text, '.') ? NetworkSocket::kConnections4
                                                     : NetworkSocket::kConnections6;
                Fd got(accept((*sockets)[static_cast<size_t>(wanted)].get(), nullptr, nullptr));
                if (!got) return std::string(text) + " arrived elsewhere";
              }
              if (try_connect("127.0.0.1", 3128) != 0) return "loopback is not left alone";
              return "";
            }),
            "");
}

TEST(ClosedNetwork, HandsQuestionsToItsSocket) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              auto sockets = make_network_sockets(kNetwork);
              if (!sockets) return sockets.error().message();
              for (const char* text : {"198.18.0.1", "8.8.8.8", "1.1.1.1"}) {
                int error = try_connect(text, 53, SOCK_DGRAM);
                if (error != EAGAIN) return std::string(text) + ": " + std::to_string(error);
                if (waiting_bytes((*sockets)[static_cast<size_t>(NetworkSocket::kDns4)]) != 1)
                  return std::string(text) + ": no question";
              }
              return "";
            }),
            "");
}

TEST(ClosedNetwork, LeavesLoopbackAlone) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              Fd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
              Destination any = destination("0.0.0.0", 8080);
              if (bind(server.get(), reinterpret_cast<sockaddr*>(&any.address), any.bytes) != 0 ||
                  listen(server.get(), 8) != 0)
                return "listen";
              for (const char* text : {"127.0.0.1", "127.1.2.3", "198.18.0.1"})
                if (int error = try_connect(text, 8080); error != 0)
                  return std::string(text) + ": " + std::to_string(error);
              return try_connect("127.0.0.1", 8081) == ECONNREFUSED ? "" : "8081 is open";
            }),
            "");
}

TEST(ClosedNetwork, WithoutTheSocketsEverythingIsRefused) {
  EXPECT_EQ(run_closed([]() -> std::string {
              if (auto closed = close_network(kNetwork); !closed) return closed.error().message();
              { auto sockets = make_network_sockets(kNetwork); }
              for (const char* text : {"198.18.1.5", "fd00:a701::105", "8.8.8.8"})
                if (int error = try_connect(text, 443); error != ECONNREFUSED)
                  return std::string(text) + ": " + std::to_string(error);
              auto again = make_network_sockets(kNetwork);
              return again ? "" : again.error().message();
            }),
            "");
}

}  // namespace
}  // namespace atl::linux
