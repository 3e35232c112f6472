#include "cli/watchdog.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

std::string take_message(int socket) {
  char bytes[64];
  ssize_t count = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  return count < 0 ? "" : std::string(bytes, static_cast<size_t>(count));
}

TEST(Watchdog, HearsThatTheLoopTurnsOnceASecond) {
  TempDir directory;
  std::string path = directory / "notify";
  Fd listener(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);

  FakeClock clock;
  Watchdog manager(path);
  manager.tell_ready();
  EXPECT_EQ(take_message(listener.get()), "READY=1");
  manager.tell_alive(clock.steady_now());
  manager.tell_alive(clock.steady_now());
  EXPECT_EQ(take_message(listener.get()), "WATCHDOG=1");
  EXPECT_EQ(take_message(listener.get()), "");
  clock.advance(std::chrono::seconds(1));
  manager.tell_alive(clock.steady_now());
  EXPECT_EQ(take_message(listener.get()), "WATCHDOG=1");
  manager.tell_stopping();
  EXPECT_EQ(take_message(listener.get()), "STOPPING=1");
}

TEST(Watchdog, IsNotNeeded) {
  Watchdog none("");
  none.tell_ready();
  Watchdog gone("/nonexistent/notify");
  gone.tell_ready();
}

}  // namespace
}  // namespace atl::cli
