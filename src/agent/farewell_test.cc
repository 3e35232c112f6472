#include "agent/farewell.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/frame.h"
#include "base/fd.h"
#include "base/file.h"
#include "linux/sealed_memory.h"

namespace atl::agent {
namespace {

struct Meeting {
  Fd listener, peer;
};

// A listener, and somebody who has connected to it.
Meeting meet() {
  Meeting meeting;
  meeting.listener = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  meeting.peer = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;  // with no more than that the kernel finds a name
  EXPECT_EQ(
      bind(meeting.listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  EXPECT_EQ(listen(meeting.listener.get(), 1), 0);
  socklen_t length = sizeof address;
  EXPECT_EQ(getsockname(meeting.listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  EXPECT_EQ(connect(meeting.peer.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  return meeting;
}

Fd events(std::string_view text) { return *linux::make_sealed_memory("events", text); }

TEST(Farewell, IsWhatItWas) {
  std::string frame = encode(Farewell{.version = 2, .cause = Cause::kMemory});
  auto said = decode_farewell(std::string_view(frame).substr(kHeaderBytes));
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(said->version, 2);
  EXPECT_EQ(said->cause, Cause::kMemory);
  for (const std::string& payload :
       {std::string(), std::string("\x02\x00", 2), std::string("\x02\x00\x01", 3),
        std::string("\x02\x00\x05\x00", 4)})
    EXPECT_FALSE(decode_farewell(payload).ok()) << payload.size();
}

TEST(Farewell, IsSaidToWhoConnectsWhenItWasMemory) {
  Meeting meeting = meet();
  say_farewell(meeting.listener.get(), events("low 0\noom_kill 1\n").get());
  auto heard = read_all(meeting.peer.get());
  ASSERT_TRUE(heard.ok());
  FrameReader reader(FrameReader::Side::kDaemon);
  std::copy(heard->begin(), heard->end(), reader.prepare(heard->size()));
  reader.commit(heard->size());
  auto frame = reader.next();
  ASSERT_TRUE(frame.ok() && *frame);
  EXPECT_EQ((*frame)->type, FrameType::kFarewell);
}

TEST(Farewell, IsNotSaidOfAnyOtherEnd) {
  for (const char* text : {"low 0\noom_kill 0\n", ""}) {
    Meeting meeting = meet();
    say_farewell(meeting.listener.get(), events(text).get());
    meeting.listener.reset();
    auto heard = read_all(meeting.peer.get());
    EXPECT_TRUE(!heard || heard->empty());
  }
}

}  // namespace
}  // namespace atl::agent
