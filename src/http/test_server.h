// For the tests of this folder: a server on a thread of its own, and a peer that sends exact bytes.
#pragma once

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <chrono>
#include <future>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/fd.h"
#include "http/server.h"

namespace atl::http {

using std::chrono::milliseconds;
using TestClock = std::chrono::steady_clock;

inline Response text_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain");
  response.body = std::move(body);
  return response;
}

inline Response test_refusal(int status, std::string_view reason) {
  return text_response(status, "refused: " + std::string(reason));
}

class TestServer {
 public:
  explicit TestServer(Handler handler, Limits limits = {}) {
    Rules rules{.limits = limits, .handler = std::move(handler), .refusal = test_refusal};
    auto server = Server::listen(context_, "127.0.0.1", 0, std::move(rules));
    if (!server.ok()) ADD_FAILURE() << server.error().message();
    server_ = std::move(server).value();
    auto ended = [this](std::exception_ptr thrown) {
      EXPECT_FALSE(thrown);
      run_returned_ = true;
    };
    boost::asio::co_spawn(context_, server_->run(), ended);
    // Returns when no work is left: a task that outlived run() would hold it.
    auto serve = [this] { context_.run(); };
    thread_ = std::async(std::launch::async, serve);
  }
  ~TestServer() {
    stop();
    thread_.wait();
    EXPECT_TRUE(run_returned_);
  }

  unsigned short port() const { return server_->port(); }
  void stop() {
    boost::asio::post(context_, [this] { server_->stop(); });
  }
  bool ends_in_time() { return thread_.wait_for(test_timeout()) == std::future_status::ready; }
  size_t open_connections() {
    std::promise<size_t> count;
    boost::asio::post(context_, [&] { count.set_value(server_->open_connections()); });
    return count.get_future().get();
  }
  bool has_connections_in_time(size_t count) {
    return eventually([&] { return open_connections() == count; });
  }

 private:
  boost::asio::io_context context_{1};
  std::unique_ptr<Server> server_;
  bool run_returned_ = false;
  std::future<void> thread_;
};

class RawPeer {
 public:
  explicit RawPeer(unsigned short port)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)) {
    connect(port);
  }
  explicit RawPeer(Fd fd) : fd_(std::move(fd)) {}

  void connect(unsigned short port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  // False when the server has reset the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  void end_sending() { shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

  // Everything up to the end of the stream, which must come.
  std::string read_to_end() {
    auto end = TestClock::now() + test_timeout();
    while (read_some(end)) continue;
    EXPECT_TRUE(ended_) << "the connection was not closed";
    return take(input_.size());
  }
  // Everything up to and including `mark`; what there is when it does not come.
  std::string read_until(std::string_view mark) {
    auto end = TestClock::now() + test_timeout();
    while (input_.find(mark) == std::string::npos && read_some(end)) continue;
    size_t found = input_.find(mark);
    return take(found == std::string::npos ? input_.size() : found + mark.size());
  }
  std::string read_exactly(size_t count) {
    auto end = TestClock::now() + test_timeout();
    while (input_.size() < count && read_some(end)) continue;
    return take(std::min(count, input_.size()));
  }
  bool is_silent_for(milliseconds time) {
    return input_.empty() && !read_some(TestClock::now() + time) && !ended_;
  }
  bool is_closed_in_time() {
    auto end = TestClock::now() + test_timeout();
    while (read_some(end)) continue;
    return ended_;
  }

 private:
  std::string take(size_t count) {
    std::string taken = input_.substr(0, count);
    input_.erase(0, count);
    return taken;
  }
  bool read_some(TestClock::time_point end) {
    auto left = std::chrono::ceil<milliseconds>(end - TestClock::now()).count();
    pollfd state{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (ended_ || left <= 0 || poll(&state, 1, static_cast<int>(left)) <= 0) return false;
    char bytes[65536];
    ssize_t count = recv(fd_.get(), bytes, sizeof bytes, 0);
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    input_.append(bytes, static_cast<size_t>(count));
    return true;
  }

  Fd fd_;
  std::string input_;
  bool ended_ = false;
};

inline size_t count_fds() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace atl::http
