#include "microvm/rebirth.h"

#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include <cstring>

#include "agent/rest_note.h"
#include "base/file.h"

namespace atl::microvm {
namespace {

constexpr int kPatienceMs = 30'000;
constexpr int64_t kSecondNs = 1'000'000'000;

// Both calls: without the second the kernel goes on with the numbers that all copies have until it
// takes new ones by itself.
Result<void> renew_random_numbers(const Rebirth& rebirth) {
  struct {
    int entropy_bits;
    int bytes;
    std::array<unsigned char, sizeof rebirth.entropy> entropy;
  } pool = {static_cast<int>(8 * sizeof rebirth.entropy), static_cast<int>(sizeof rebirth.entropy),
            rebirth.entropy};
  static_assert(sizeof pool == sizeof(rand_pool_info) + sizeof rebirth.entropy);
  ATOLL_TRY(Fd device, open_file("/dev/urandom", O_RDWR));
  if (ioctl(device.get(), RNDADDENTROPY, &pool) != 0) return Error::system("add entropy");
  if (ioctl(device.get(), RNDRESEEDCRNG) != 0) return Error::system("reseed");
  return {};
}

// Its older notes come first.
Result<void> await_agent(int notes) {
  while (true) {
    pollfd waiting = {.fd = notes, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kPatienceMs) != 1) return Error::from_errno("await the agent", ETIMEDOUT);
    agent::RestNote note;
    ssize_t count = recv(notes, &note, sizeof note, MSG_DONTWAIT);
    if (count <= 0) return Error::system("hear the agent");
    if (count == 1) return {};
  }
}

}  // namespace

Result<Rebirth> make_rebirth(const std::array<unsigned char, agent::kNonceBytes>& nonce) {
  Rebirth rebirth = {.nonce = nonce, .entropy = {}, .time_ns = 0};
  ssize_t count = getrandom(rebirth.entropy.data(), rebirth.entropy.size(), 0);
  if (count != static_cast<ssize_t>(rebirth.entropy.size())) return Error::system("getrandom");
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  rebirth.time_ns = now.tv_sec * kSecondNs + now.tv_nsec;
  return rebirth;
}

Result<void> tell_agent(const Rebirth& rebirth, int notes) {
  ssize_t sent = send(notes, rebirth.nonce.data(), rebirth.nonce.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(rebirth.nonce.size())) return Error::system("tell the agent");
  return await_agent(notes);
}

Result<void> be_reborn(const Rebirth& rebirth, int notes) {
  ATOLL_TRY_VOID(renew_random_numbers(rebirth));
  timespec time = {.tv_sec = rebirth.time_ns / kSecondNs, .tv_nsec = rebirth.time_ns % kSecondNs};
  if (clock_settime(CLOCK_REALTIME, &time) != 0) return Error::system("set the clock");
  return tell_agent(rebirth, notes);
}

}  // namespace atl::microvm
