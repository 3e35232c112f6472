#include "linux/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

TEST(UnixSocket, ListensInADirectoryDeeperThanAnAddressAndForItsOwnerOnly) {
  char base[] = "/tmp/atoll-socket-test-XXXXXX";
  ASSERT_NE(mkdtemp(base), nullptr);
  std::string deep = std::string(base) + "/" + std::string(120, 'd');
  ASSERT_TRUE(make_directory(deep, 0755).ok());
  auto directory = open_file(deep, O_PATH | O_DIRECTORY);
  ASSERT_TRUE(directory.ok());
  auto listener = listen_at(directory->get(), "socket", SOCK_STREAM, 1);
  ASSERT_TRUE(listener.ok());
  struct stat status;
  ASSERT_EQ(fstatat(directory->get(), "socket", &status, 0), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  auto client = connect_at(directory->get(), "socket", SOCK_STREAM);
  ASSERT_TRUE(client.ok());
  Fd server(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  auto peer = peer_credentials(server.get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, geteuid());
  auto again = listen_at(directory->get(), "socket", SOCK_STREAM, 1);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().system_errno(), EADDRINUSE);
  std::filesystem::remove_all(base);
}

TEST(UnixSocket, CarriesDescriptorsAndTheSender) {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair.ok());
  int on = 1;
  ASSERT_EQ(setsockopt(pair->ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  auto null = open_file("/dev/null", O_RDONLY);
  ASSERT_TRUE(null.ok());
  int fds[] = {null->get(), null->get()};
  ASSERT_TRUE(send_byte(pair->theirs.get(), 'x', fds).ok());
  auto message = receive_byte(pair->ours.get(), 1000);
  ASSERT_TRUE(message.ok() && message->has_value());
  EXPECT_EQ((*message)->byte, 'x');
  EXPECT_EQ((*message)->sender, getpid());
  EXPECT_TRUE((*message)->fds[1].valid());
  EXPECT_FALSE((*message)->fds[2].valid());
  EXPECT_EQ(fcntl((*message)->fds[0].get(), F_GETFD), FD_CLOEXEC);
}

std::string open_fds() {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    names += entry.path().filename().string() + " ";
  return names;
}

TEST(UnixSocket, WhatHasNoRoomIsDroppedAndSaid) {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair.ok());
  std::string before = open_fds();
  for (size_t room : {0, 1, 2}) {
    int sent[] = {0, 0, 0, 0, 0};
    ASSERT_TRUE(send_message(pair->theirs.get(), std::string_view("abc"), sent).ok());
    char bytes[3];
    Fd fds[2];
    auto message = receive_message(pair->ours.get(), bytes, std::span(fds, room));
    ASSERT_TRUE(message.ok());
    EXPECT_FALSE(message->whole) << room;
    EXPECT_EQ(message->fds, room);
    for (Fd& fd : fds) fd.reset();
    EXPECT_EQ(open_fds(), before) << room;
  }
  ASSERT_TRUE(send_message(pair->theirs.get(), std::string_view("abc"), {}).ok());
  char two[2];
  auto cut = receive_message(pair->ours.get(), two, {});
  ASSERT_TRUE(cut.ok());
  EXPECT_FALSE(cut->whole);
}

TEST(UnixSocket, TellsSilenceFromTheEnd) {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair.ok());
  auto silence = receive_byte(pair->ours.get(), 1);
  ASSERT_FALSE(silence.ok());
  EXPECT_EQ(silence.error().code(), Code::kTimeout);
  pair->theirs.reset();
  auto end = receive_byte(pair->ours.get(), 1000);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

}  // namespace
}  // namespace atl::linux
