// Bytes of a stranger through the whole request path: HTTP server, router, JSON, routes, sandboxes
// with a fake driver. Each input is one connection. `{KEY}` in the input stands for a key that is
// valid, so that the fuzzer gets past the door.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string>
#include <string_view>

#include "api/test_server.h"
#include "base/fd.h"
#include "base/log.h"

namespace {

constexpr int kAnswerTimeMs = 20;

// One server for all inputs, made before the first and never destroyed: the fuzzer ends by exiting.
atl::api::TestServer& the_server() {
  static atl::api::TestServer* server = [] {
    atl::configure_log("fuzz", static_cast<atl::LogLevel>(255));
    return new atl::api::TestServer();
  }();
  return *server;
}

std::string with_key(std::string_view input, const std::string& key) {
  std::string bytes(input);
  for (size_t at = 0; (at = bytes.find("{KEY}", at)) != bytes.npos; at += key.size())
    bytes.replace(at, 5, key);
  return bytes;
}

void converse(unsigned short port, const std::string& bytes) {
  atl::Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
  if (send(socket_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return;
  shutdown(socket_fd.get(), SHUT_WR);
  char answer[4096];
  pollfd readable{socket_fd.get(), POLLIN, 0};
  while (poll(&readable, 1, kAnswerTimeMs) > 0)
    if (recv(socket_fd.get(), answer, sizeof answer, 0) <= 0) return;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  atl::api::TestServer& server = the_server();
  std::string_view input(reinterpret_cast<const char*>(data), size);
  converse(server.port, with_key(input, server.key));
  return 0;
}
