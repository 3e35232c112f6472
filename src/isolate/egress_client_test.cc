#include "isolate/egress_client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "async/spawn.h"
#include "base/eventually.h"
#include "base/file.h"
#include "linux/unix_socket.h"

namespace atl::isolate {
namespace {

using egress::Operation;
using egress::Status;

constexpr const char* kSome = R"({"rules":[{"allow":"a.example"}]})";
constexpr const char* kNone = "{}";

template <typename T>
Task<void> put_into(Task<T> task, std::optional<T>& slot) {
  slot.emplace(co_await std::move(task));
}

// An egress that says what the test says, in the thread of the client.
class EgressClientTest : public testing::Test {
 protected:
  EgressClientTest() {
    char name[] = "/tmp/atoll-egress-client-XXXXXX";
    ATOLL_CHECK(mkdtemp(name) != nullptr);
    directory_ = name;
    std::filesystem::create_directory(directory_ + "/egress");
    auto reopen = [](SandboxId) -> Task<Result<EgressClient::Sockets>> {
      co_return EgressClient::Sockets();
    };
    client_.emplace(context_.get_executor(), directory_, reopen);
  }
  ~EgressClientTest() override {
    context_.stop();
    std::filesystem::remove_all(directory_);
  }

  void listen() {
    Fd folder = open_file(directory_ + "/egress", O_PATH | O_DIRECTORY).value();
    listener_ =
        linux::listen_at(folder.get(), egress::kSocketName, SOCK_SEQPACKET | SOCK_NONBLOCK, 4)
            .value();
    // detached: the fixture owns it, and ends it with the context
    spawn(context_.get_executor(), client_->run());
    accept_client();
  }
  void accept_client() {
    wait([this] {
      connection_ = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return connection_.valid();
    });
  }
  // Runs the client until the condition holds.
  void wait(std::function<bool()> condition) {
    ASSERT_TRUE(eventually([&] {
      context_.poll();
      context_.restart();
      return condition();
    }));
  }
  egress::Request next() {
    std::string buffer(egress::kMaxMessageBytes, '\0');
    ssize_t count = -1;
    wait([&] {
      count = recv(connection_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      return count > 0;
    });
    return egress::parse_request({buffer.data(), static_cast<size_t>(count)}).value();
  }
  void reply(const egress::Request& request, Status status = Status::kOk) {
    std::string text = egress::encode_reply({.request_id = request.request_id, .status = status});
    ASSERT_GT(send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
  }
  // Answers each operation as it says until the slot is filled; also what is told again meanwhile.
  template <typename T>
  T answer(std::shared_ptr<std::optional<T>> slot, std::map<Operation, Status> statuses) {
    std::string buffer(egress::kMaxMessageBytes, '\0');
    wait([&] {
      ssize_t count = recv(connection_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count <= 0) return slot->has_value();
      auto request = egress::parse_request({buffer.data(), static_cast<size_t>(count)}).value();
      seen_.push_back(request.operation);
      reply(request, statuses[request.operation]);
      return slot->has_value();
    });
    return std::move(**slot);
  }
  // Begins something, whose end is in the slot.
  template <typename T>
  std::shared_ptr<std::optional<T>> begin(Task<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    // detached: the fixture owns it, and ends it with the context
    spawn(context_.get_executor(), put_into(std::move(task), *slot));
    kept_.push_back(slot);
    return slot;
  }
  template <typename T>
  T done(Task<T> task) {
    auto slot = begin(std::move(task));
    wait([&] { return slot->has_value(); });
    return std::move(**slot);
  }

  std::string directory_;
  Fd listener_, connection_;
  std::vector<Operation> seen_;
  std::vector<std::shared_ptr<void>> kept_;  // for tasks that outlive their test's interest
  boost::asio::io_context context_;
  std::optional<EgressClient> client_;
  SandboxId id_ = SandboxId::draw();
};

std::string reason_of(const Result<void>& result) {
  return result ? std::string() : std::string(result.error().reason());
}

TEST_F(EgressClientTest, WithoutEgressNothingIsInForceButWhatAlwaysWas) {
  EXPECT_TRUE(done(client_->open(id_, {})));
  EXPECT_TRUE(done(client_->set_policy(id_, 1, kNone)));
  EXPECT_EQ(reason_of(done(client_->set_policy(id_, 1, kSome))), "egress_unavailable");
  // It may be in force in the end.
  EXPECT_EQ(reason_of(done(client_->set_policy(id_, 1, kNone))), "egress_unavailable");
  EXPECT_TRUE(done(client_->check_room()));
}

TEST_F(EgressClientTest, ANewConnectionFirstDeniesWhatIsInDoubt) {
  listen();
  reply(next());  // kRetain
  auto set = begin(client_->set_policy(id_, 1, kSome));
  EXPECT_EQ(next().operation, Operation::kPolicy);
  connection_ = Fd();
  wait([&] { return set->has_value(); });
  EXPECT_EQ(reason_of(**set), "egress_unavailable");
  accept_client();
  egress::Request deny = next();
  EXPECT_EQ(deny.operation, Operation::kDeny);
  EXPECT_EQ(deny.retained, id_.string());
  reply(deny);
  egress::Request retain = next();
  EXPECT_EQ(retain.operation, Operation::kRetain);
  reply(retain);
  egress::Request policy = next();
  EXPECT_EQ(policy.operation, Operation::kPolicy);
  EXPECT_EQ(policy.policy, kSome);
  reply(policy);
}

TEST_F(EgressClientTest, WhatWasInForceIsNotInDoubt) {
  listen();
  reply(next());
  auto set = begin(client_->set_policy(id_, 1, kSome));
  reply(next());
  wait([&] { return set->has_value(); });
  EXPECT_TRUE(**set);
  connection_ = Fd();
  accept_client();
  EXPECT_EQ(next().operation, Operation::kRetain);
}

TEST_F(EgressClientTest, AFullEgressRefusesASandbox) {
  listen();
  reply(next());
  auto room = answer(begin(client_->check_room()), {{Operation::kRoom, Status::kFull}});
  EXPECT_EQ(reason_of(room), "host_full");
  auto opened = answer(begin(client_->open(id_, {})), {{Operation::kOpen, Status::kFull}});
  EXPECT_EQ(reason_of(opened), "host_full");
}

TEST_F(EgressClientTest, AChangeOfOneThatIsNotServedFailsUnlessItIsServedAnew) {
  listen();
  reply(next());
  for (Status status : {Status::kFull, Status::kFailed, Status::kOk}) {
    auto set = begin(client_->set_policy(id_, 1, kSome));
    Result<void> result =
        answer(set, {{Operation::kPolicy, Status::kNotFound}, {Operation::kOpen, status}});
    EXPECT_EQ(reason_of(result), status == Status::kOk ? "" : "egress_unavailable");
    EXPECT_NE(std::find(seen_.begin(), seen_.end(), Operation::kOpen), seen_.end());
    seen_.clear();
  }
}

TEST_F(EgressClientTest, SilenceIsNoHealth) {
  using Clock = std::chrono::steady_clock;
  listen();
  reply(next());
  auto health = done(client_->check(Clock::now() + std::chrono::milliseconds(20)));
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().reason(), "egress_unavailable");
}

}  // namespace
}  // namespace atl::isolate
