#include "isolate/warden_client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "async/spawn.h"
#include "base/file.h"
#include "linux/unix_socket.h"

namespace atl::isolate {
namespace {

using warden::Operation;
using warden::Reply;
using warden::Request;

Reply answer_to(const Request& request) {
  Reply reply{};
  reply.magic = warden::kMagic;
  reply.version = warden::spoken_version();
  reply.operation = request.operation;
  reply.request_id = request.request_id;
  return reply;
}

// A warden that does what the test says with one connection, in a thread of its own.
class ScriptedWarden {
 public:
  using Script = std::function<void(int socket)>;

  ScriptedWarden() {
    char name[] = "/tmp/atoll-warden-client-XXXXXX";
    ATOLL_CHECK(mkdtemp(name) != nullptr);
    directory = name;
  }
  ~ScriptedWarden() {
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove_all(directory);
  }
  void serve(Script script) {
    Fd folder = open_file(directory, O_PATH | O_DIRECTORY).value();
    Fd listener = linux::listen_at(folder.get(), "warden.sock", SOCK_SEQPACKET, 4).value();
    thread_ = std::thread([script, socket = listener.release()] {
      Fd owned(socket);
      Fd connection(accept(owned.get(), nullptr, nullptr));
      script(connection.get());
    });
  }

  std::string directory;

 private:
  std::thread thread_;
};

Request receive(int socket) {
  Request request{};
  EXPECT_EQ(recv(socket, &request, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  return request;
}

void send_reply(int socket, const Reply& reply) {
  EXPECT_EQ(send(socket, &reply, sizeof reply, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof reply));
}

Task<void> ask_into(WardenClient& client, Operation operation,
                    std::optional<Result<WardenClient::Answer>>& slot) {
  Request request{};
  request.operation = operation;
  slot.emplace(co_await client.ask(request));
}

// Asks for all at once and waits for every answer.
std::vector<Result<WardenClient::Answer>> ask_all(const std::string& directory,
                                                  std::vector<Operation> operations) {
  boost::asio::io_context context;
  PeerWatch watch(directory, "atoll-warden");
  WardenClient client(context.get_executor(), directory, watch);
  std::vector<std::optional<Result<WardenClient::Answer>>> slots(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    // detached: owned by this call, which runs the context until all have answered
    spawn(context.get_executor(), ask_into(client, operations[i], slots[i]));
  }
  auto waiting = [&] {
    return std::any_of(slots.begin(), slots.end(), [](auto& slot) { return !slot.has_value(); });
  };
  while (waiting()) context.run_one();
  std::vector<Result<WardenClient::Answer>> answers;
  for (auto& slot : slots) answers.push_back(std::move(*slot));
  client.close();
  context.poll();
  return answers;
}

TEST(WardenClient, MatchesRepliesThatComeInAnotherOrder) {
  ScriptedWarden warden;
  warden.serve([](int socket) {
    Request first = receive(socket);
    Request second = receive(socket);
    EXPECT_EQ(first.magic, warden::kMagic);
    EXPECT_NE(first.request_id, second.request_id);
    send_reply(socket, answer_to(second));
    send_reply(socket, answer_to(first));
  });
  auto answers = ask_all(warden.directory, {Operation::kProbe, Operation::kList});
  ASSERT_TRUE(answers[0].ok() && answers[1].ok());
  EXPECT_EQ(answers[0]->reply.operation, Operation::kProbe);
  EXPECT_EQ(answers[1]->reply.operation, Operation::kList);
}

TEST(WardenClient, EveryPendingRequestFailsWhenTheWardenDies) {
  ScriptedWarden warden;
  warden.serve([](int socket) {
    receive(socket);
    receive(socket);
  });
  for (auto& answer : ask_all(warden.directory, {Operation::kProbe, Operation::kList})) {
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kUnavailable);
    EXPECT_EQ(answer.error().reason(), "warden_unavailable");
  }
}

TEST(WardenClient, NoWardenIsUnavailableAtOnce) {
  ScriptedWarden warden;
  auto answers = ask_all(warden.directory, {Operation::kProbe});
  ASSERT_FALSE(answers[0].ok());
  EXPECT_EQ(answers[0].error().reason(), "warden_unavailable");
}

TEST(WardenClient, AMalformedReplyEndsTheConnection) {
  ScriptedWarden warden;
  warden.serve([](int socket) {
    Reply reply = answer_to(receive(socket));
    reply.magic = 1;
    send_reply(socket, reply);
  });
  auto answers = ask_all(warden.directory, {Operation::kProbe});
  ASSERT_FALSE(answers[0].ok());
  EXPECT_EQ(answers[0].error().code(), Code::kCorrupt);
}

TEST(WardenClient, AWardenOfAnotherReleaseIsUnavailableAndBothVersionsAreNamed) {
  ScriptedWarden warden;
  warden.serve([](int socket) {
    Reply reply = answer_to(receive(socket));
    reply.version = 9;
    // Of any length: nothing but the version of it can be read.
    std::string longer(sizeof reply + 100, 'x');
    std::memcpy(longer.data(), &reply, sizeof reply);
    EXPECT_EQ(send(socket, longer.data(), longer.size(), MSG_NOSIGNAL), ssize_t(longer.size()));
  });
  auto answers = ask_all(warden.directory, {Operation::kProbe});
  ASSERT_FALSE(answers[0].ok());
  EXPECT_EQ(answers[0].error().code(), Code::kUnavailable);
  EXPECT_EQ(answers[0].error().reason(), "warden_unavailable");
  EXPECT_NE(answers[0].error().message().find("speaks version 9, this one 10"), std::string::npos)
      << answers[0].error().message();
}

// Nothing here waits for the patience to pass: the watch is told how much has.
TEST(WardenClient, GivesUpOnAWardenWhoseLoopStandsStillAndRefusesUntilItTurnsAgain) {
  char name[] = "/tmp/atoll-warden-client-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  Fd folder = open_file(name, O_PATH | O_DIRECTORY).value();
  Fd listener = linux::listen_at(folder.get(), "warden.sock", SOCK_SEQPACKET, 4).value();
  auto heartbeat = linux::Heartbeat::open_at(folder.get(), "atoll-warden", geteuid()).value();
  boost::asio::io_context context;
  PeerWatch watch(name, "atoll-warden");
  WardenClient client(context.get_executor(), name, watch);
  watch.look(kPeerPatience);

  std::optional<Result<WardenClient::Answer>> first, second;
  // detached: owned by this test, which runs the context until both have answered
  spawn(context.get_executor(), ask_into(client, Operation::kProbe, first));
  context.poll();
  EXPECT_FALSE(first.has_value());
  watch.look(kPeerPatience);
  EXPECT_EQ(watch.trouble(), "it does not answer");
  while (!first) context.run_one();
  ASSERT_FALSE(first->ok());
  EXPECT_EQ(first->error().code(), Code::kUnavailable);
  EXPECT_EQ(first->error().reason(), "warden_unavailable");

  // What was sent is not there for the warden any more when it wakes up.
  Fd connection(accept(listener.get(), nullptr, nullptr));
  pollfd left = {.fd = connection.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&left, 1, 0), 1);
  EXPECT_NE(left.revents & POLLHUP, 0);

  // detached: owned by this test too
  spawn(context.get_executor(), ask_into(client, Operation::kProbe, second));
  context.poll();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->error().reason(), "warden_unavailable");

  heartbeat.beat();
  watch.look(kPeerPatience);
  EXPECT_FALSE(watch.is_silent());
  EXPECT_EQ(watch.trouble(), "");
  client.close();
  context.poll();
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace atl::isolate
