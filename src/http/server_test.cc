#include "http/server.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "http/test_server.h"
#include "http/wire.h"

namespace atl::http {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

Task<void> answer(Exchange& exchange) {
  Response response = text_response(200, "ok");
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

Task<bool> sleeps(milliseconds time) {
  auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor, time);
  auto [error] = co_await timer.async_wait(kAwait);
  co_return !error;
}

TEST(Server, TakenPortIsAnErrorAtOnce) {
  TestServer server(answer);
  boost::asio::io_context context;
  auto second = Server::listen(context, "127.0.0.1", server.port(), Rules{});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().system_errno(), EADDRINUSE);
  EXPECT_EQ(Server::listen(context, "localhost:", 0, Rules{}).error().code(), Code::kInvalid);
}

TEST(Server, DescriptorsAreNotInherited) {
  TestServer server(answer);
  RawPeer peer(server.port());
  ASSERT_TRUE(server.has_connections_in_time(1));
  for (int fd = 3; fd < 256; ++fd) {
    int flags = fcntl(fd, F_GETFD);
    int type = 0;
    socklen_t size = sizeof type;
    bool is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    EXPECT_TRUE(flags < 0 || !is_socket || (flags & FD_CLOEXEC)) << fd;
  }
}

TEST(Server, ServesOverIpv6) {
  boost::asio::io_context context;
  Rules rules{.limits = {}, .handler = answer, .refusal = test_refusal};
  auto server = Server::listen(context, "::1", 0, std::move(rules));
  ASSERT_TRUE(server.ok()) << server.error().message();
  EXPECT_NE((*server)->port(), 0);
}

Task<void> answer_who_has_a_key(Exchange& exchange) {
  if (exchange.request().path == "/key") set_known(exchange);
  Response response = text_response(200, "ok");
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

bool is_served(RawPeer& peer, std::string_view path = "/a") {
  peer.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
  return peer.read_until("ok").starts_with("HTTP/1.1 200 ");
}

TEST(Server, ClosesTheStrangerWhoHasWaitedLongestForOthersToHaveRoom) {
  TestServer server(answer_who_has_a_key, Limits{.connections = 3});
  RawPeer known(server.port());
  EXPECT_TRUE(is_served(known, "/key"));
  RawPeer silent(server.port());
  ASSERT_TRUE(server.has_connections_in_time(2));
  RawPeer later(server.port());
  EXPECT_TRUE(is_served(later));
  RawPeer newest(server.port());
  EXPECT_TRUE(is_served(newest));
  EXPECT_TRUE(silent.is_closed_in_time());
  EXPECT_TRUE(is_served(later)) << "only as many go as have to";
  EXPECT_TRUE(is_served(known));
  EXPECT_TRUE(server.has_connections_in_time(3));
}

TEST(Server, StrangersOfOneAddressPutOutEachOther) {
  TestServer server(answer_who_has_a_key, Limits{.connections_by_address = 2});
  RawPeer known(server.port());
  EXPECT_TRUE(is_served(known, "/key"));
  std::vector<std::unique_ptr<RawPeer>> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(std::make_unique<RawPeer>(server.port()));
    EXPECT_TRUE(is_served(*strangers.back())) << i;
  }
  for (int i = 0; i < 18; ++i) EXPECT_TRUE(strangers[i]->is_closed_in_time()) << i;
  EXPECT_TRUE(server.has_connections_in_time(3));
  EXPECT_TRUE(is_served(known));
  EXPECT_TRUE(is_served(*strangers.back()));
}

TEST(Server, RefusesConnectionsOverTheLimit) {
  TestServer server(answer_who_has_a_key, Limits{.connections = 2});
  RawPeer first(server.port());
  RawPeer second(server.port());
  EXPECT_TRUE(is_served(first, "/key"));
  EXPECT_TRUE(is_served(second, "/key"));
  RawPeer third(server.port());
  third.send(kGet);
  std::string all = third.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 503 ")) << all;
  EXPECT_TRUE(all.ends_with("refused: too many connections")) << all;
  third.close();
  first.send(kGet);
  EXPECT_TRUE(first.read_until("ok").starts_with("HTTP/1.1 200 "));
  second.close();
  ASSERT_TRUE(server.has_connections_in_time(1));
  RawPeer fourth(server.port());
  fourth.send(kGet);
  EXPECT_TRUE(fourth.read_until("ok").starts_with("HTTP/1.1 200 "));
}

TEST(Server, SlowHeaderIsRefusedHoweverManyBytesCome) {
  TestServer server(answer, Limits{.header_time = milliseconds(200)});
  auto begin = TestClock::now();
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nX: ");
  std::atomic<bool> over = false;
  std::thread dripping([&] {
    while (!over) {
      std::this_thread::sleep_for(milliseconds(20));
      peer.send("x");
    }
  });
  std::string all = peer.read_to_end();
  auto took = TestClock::now() - begin;
  over = true;
  dripping.join();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 408 ")) << all;
  EXPECT_GE(took, milliseconds(200));
}

TEST(Server, SilentConnectionsAreClosed) {
  TestServer impatient(answer, Limits{.header_time = milliseconds(100)});
  auto begin = TestClock::now();
  RawPeer never_asked(impatient.port());
  never_asked.read_to_end();
  EXPECT_GE(TestClock::now() - begin, milliseconds(100));
  TestServer server(answer, Limits{.idle_time = milliseconds(300)});
  begin = TestClock::now();
  RawPeer asked_once(server.port());
  asked_once.send(kGet);
  asked_once.read_until("ok");
  asked_once.read_to_end();
  EXPECT_GE(TestClock::now() - begin, milliseconds(300));
}

// Sends a body piece by piece and stops in the middle. False when the host was so busy that the
// time was over between two pieces, which says nothing about the server.
bool body_times_out_after_its_last_byte() {
  std::promise<Code> seen;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        auto body = co_await exchange.read_body(100);
        seen.set_value(body.ok() ? Code::kSystem : body.error().code());
      },
      Limits{.body_time = milliseconds(1500)});
  RawPeer peer(server.port());
  peer.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
  auto outcome = seen.get_future();
  auto begin = TestClock::now();
  for (int i = 0; i < 5; ++i) {
    if (outcome.wait_for(milliseconds(60)) == std::future_status::ready) return false;
    begin = TestClock::now();
    peer.send("x");
  }
  EXPECT_EQ(outcome.get(), Code::kTimeout);
  EXPECT_GE(TestClock::now() - begin, milliseconds(1500)) << "counted from the last byte";
  EXPECT_TRUE(peer.is_closed_in_time());
  return true;
}

TEST(Server, BodyWithoutProgressTimesOut) {
  EXPECT_TRUE(eventually(body_times_out_after_its_last_byte));
}

TEST(Server, ABodyThatTricklesTimesOutAndIsAnswered) {
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        auto body = co_await exchange.read_body(100);
        bool late = !body.ok() && body.error().code() == Code::kTimeout;
        Response response = text_response(late ? 408 : 200, "");
        static_cast<void>(co_await exchange.reply(std::move(response)));
      },
      Limits{.body_time = milliseconds(1000), .whole_body_time = milliseconds(300)});
  RawPeer peer(server.port());
  peer.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(60));
    peer.send("x");
  }
  EXPECT_TRUE(peer.read_to_end().starts_with("HTTP/1.1 408 "));
}

TEST(Server, WriteWithoutProgressTimesOut) {
  std::promise<Code> seen;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        Response response = text_response(200, std::string(64 * 1024 * 1024, 'x'));
        auto sent = co_await exchange.reply(std::move(response));
        seen.set_value(sent.ok() ? Code::kSystem : sent.error().code());
      },
      Limits{.write_time = milliseconds(150)});
  RawPeer peer(server.port());
  peer.send(kGet);
  EXPECT_EQ(seen.get_future().get(), Code::kTimeout);
}

// No descriptor is left in this process while it lives.
class NoDescriptors {
 public:
  explicit NoDescriptors(int open_fd) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit low{.rlim_cur = 64, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (;;) {
      Fd filler(fcntl(open_fd, F_DUPFD_CLOEXEC, 0));
      if (!filler) break;
      fillers_.push_back(std::move(filler));
    }
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_;
  std::vector<Fd> fillers_;
};

TEST(Server, GoesOnAfterRunningOutOfDescriptors) {
  TestServer server(answer_who_has_a_key);
  RawPeer early(server.port());
  EXPECT_TRUE(is_served(early, "/key"));
  RawPeer late(Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)));
  {
    NoDescriptors none(early.fd());
    late.connect(server.port());
    late.send(kGet);
    timespec cpu_before;
    timespec cpu_after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
    EXPECT_TRUE(late.is_silent_for(milliseconds(400)));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
    double spent = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                   static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec) / 1e9;
    EXPECT_LT(spent, 0.2) << "the accept loop spins";
  }
  EXPECT_TRUE(late.read_until("ok").starts_with("HTTP/1.1 200 "));
}

TEST(Server, WithoutDescriptorsAStrangerMakesRoom) {
  TestServer server(answer_who_has_a_key);
  RawPeer stranger(server.port());
  EXPECT_TRUE(is_served(stranger));
  RawPeer late(Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP)));
  NoDescriptors none(stranger.fd());
  late.connect(server.port());
  EXPECT_TRUE(is_served(late));
  EXPECT_TRUE(stranger.is_closed_in_time());
}

TEST(Server, StopClosesIdleConnectionsAtOnce) {
  TestServer server(answer, Limits{.drain = milliseconds(60'000)});
  RawPeer idle(server.port());
  idle.send(kGet);
  idle.read_until("ok");
  RawPeer in_header(server.port());
  in_header.send("GET / HT");
  RawPeer silent(server.port());
  ASSERT_TRUE(server.has_connections_in_time(3));
  server.stop();
  EXPECT_TRUE(server.ends_in_time());
  EXPECT_TRUE(idle.is_closed_in_time());
}

TEST(Server, StopLetsARunningHandlerAnswer) {
  std::promise<void> started;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        started.set_value();
        EXPECT_TRUE(co_await sleeps(milliseconds(200)));
        co_await answer(exchange);
      },
      Limits{.drain = milliseconds(60'000)});
  RawPeer peer(server.port());
  peer.send(kGet);
  started.get_future().get();
  server.stop();
  std::string all = peer.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 200 ")) << all;
  EXPECT_NE(all.find("\r\nConnection: close\r\n"), std::string::npos) << all;
  peer.close();
  EXPECT_TRUE(server.ends_in_time());
}

TEST(Server, StopCancelsAHandlerThatDoesNotEnd) {
  std::promise<void> started;
  std::atomic<int> cancelled = 0;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        started.set_value();
        // Stubborn: waits again after the first cancellation.
        if (!co_await sleeps(milliseconds(60'000))) ++cancelled;
        if (!co_await sleeps(milliseconds(60'000))) ++cancelled;
        auto sent = co_await exchange.reply(Response());
        EXPECT_EQ(sent.error().code(), Code::kCancelled);
      },
      Limits{.drain = milliseconds(100)});
  RawPeer peer(server.port());
  peer.send(kGet);
  started.get_future().get();
  server.stop();
  EXPECT_TRUE(server.ends_in_time());
  EXPECT_EQ(cancelled, 2);
  EXPECT_TRUE(peer.is_closed_in_time());
}

TEST(Server, StopEndsAnEventStream) {
  std::atomic<bool> failed = false;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        static_cast<void>(co_await start_events(exchange));
        while ((co_await exchange.write("data: x\n\n")).ok()) co_await sleeps(milliseconds(5));
        failed = true;
      },
      Limits{.drain = milliseconds(50)});
  RawPeer peer(server.port());
  peer.send(kGet);
  peer.read_until("data: x");
  server.stop();
  EXPECT_TRUE(server.ends_in_time());
  EXPECT_TRUE(failed);
}

TEST(Server, StopEndsAReadOfABody) {
  std::promise<void> started;
  std::promise<Code> seen;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        started.set_value();
        auto body = co_await exchange.read_body(100);
        seen.set_value(body.ok() ? Code::kSystem : body.error().code());
      },
      Limits{.drain = milliseconds(50)});
  RawPeer peer(server.port());
  peer.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n");
  started.get_future().get();
  server.stop();
  EXPECT_EQ(seen.get_future().get(), Code::kCancelled);
  EXPECT_TRUE(server.ends_in_time());
}

TEST(Server, CancellingRunIsAStop) {
  boost::asio::io_context context;
  Rules rules{.limits = {}, .handler = answer, .refusal = test_refusal};
  auto server = Server::listen(context, "127.0.0.1", 0, std::move(rules));
  ASSERT_TRUE(server.ok());
  boost::asio::cancellation_signal cancel;
  bool returned = false;
  auto ended = [&](std::exception_ptr) { returned = true; };
  boost::asio::co_spawn(context, (*server)->run(),
                        boost::asio::bind_cancellation_slot(cancel.slot(), ended));
  context.run_for(milliseconds(20));
  EXPECT_FALSE(returned);
  cancel.emit(boost::asio::cancellation_type::terminal);
  EXPECT_TRUE(eventually([&] {
    context.run_for(milliseconds(10));
    return returned;
  }));
}

TEST(Server, LeavesNoDescriptorBehind) {
  size_t before = count_fds();
  {
    TestServer server(answer, Limits{.connections = 20});
    std::vector<std::unique_ptr<RawPeer>> peers;
    for (int i = 0; i < 30; ++i) {
      peers.push_back(std::make_unique<RawPeer>(server.port()));
      peers.back()->send(i % 3 == 0 ? kGet : "rubbish\n");
    }
    for (auto& peer : peers) peer->read_until("\r\n\r\n");
  }
  EXPECT_EQ(count_fds(), before);
}

}  // namespace
}  // namespace atl::http
