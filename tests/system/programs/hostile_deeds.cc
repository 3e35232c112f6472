#include "hostile_deeds.h"

#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "microvm/guest_disks.h"
#include "microvm/machine.h"
#include "microvm/relay_frame.h"

namespace atl::hostile {
namespace {

constexpr int kPauseMs = 50;
constexpr size_t kPieceBytes = 1 << 20;
constexpr uint32_t kMostConnections = 8;

void write_for_ever(int port, const std::string& bytes) {
  fcntl(port, F_SETFL, 0);  // waits for room
  while (write_all(port, bytes)) {
  }
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  fill_random({reinterpret_cast<unsigned char*>(bytes.data()), count});
  return bytes;
}

// Of a connection that there has never been: the keeper has to read and to drop them.
void flood(int port) {
  std::string frames;
  for (int i = 0; i < 32; ++i)
    frames += microvm::encode_relay(microvm::RelayKind::kData, 0,
                                    std::string(microvm::kMaxRelayBytes, 'x'));
  write_for_ever(port, frames);
}

// To atolld, in the agent's name.
void lie(int port) {
  std::string frames;
  for (uint32_t connection = 1; connection <= kMostConnections; ++connection)
    frames += microvm::encode_relay(microvm::RelayKind::kData, connection, random_bytes(4096));
  write_for_ever(port, frames);
}

// Code of the lowest ring: interrupts off, and a jump to itself.
void spin() {
  static constexpr unsigned char kSpin[] = {0xfa, 0xeb, 0xfe};
  constexpr unsigned long kPlace = 64ul << 20, kPage = 4096;
  kexec_segment segment = {.buf = kSpin,
                           .bufsz = sizeof kSpin,
                           .mem = reinterpret_cast<const void*>(kPlace),
                           .memsz = kPage};
  if (syscall(SYS_kexec_load, kPlace, 1ul, &segment, KEXEC_ARCH_X86_64) != 0) return;
  syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, nullptr);
}

void fill_disk() {
  auto name = microvm::find_disk(microvm::kDiskSerial);
  auto disk = open_file(name.value_or(""), O_WRONLY);
  std::string bytes = random_bytes(kPieceBytes);
  while (disk && write_all(disk->get(), bytes)) {
  }
  if (disk) fsync(disk->get());
}

void do_deed(const std::string& deed, int port) {
  if (deed == "reboot") reboot(RB_AUTOBOOT);
  if (deed == "power-off") reboot(RB_POWER_OFF);
  if (deed == "halt") reboot(RB_HALT_SYSTEM);
  if (deed == "panic") (void)write_file_at(AT_FDCWD, "/proc/sysrq-trigger", "c");
  if (deed == "spin") spin();
  if (deed == "disk") fill_disk();
  if (deed == "flood") flood(port);
  if (deed == "lie") lie(port);
  if (deed == "garbage") write_for_ever(port, random_bytes(kPieceBytes));
  if (deed == "exit") _exit(0);
}

}  // namespace

std::string wanted_deed(const char* file) {
  auto text = read_file(file);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

int poll_for_deeds(pollfd* polls, size_t count, size_t port, const char* file) {
  static std::string done;
  while (true) {
    int ready = poll(polls, count, kPauseMs);
    std::string deed = wanted_deed(file);
    if (deed != done) {
      done = deed;
      do_deed(deed, polls[port].fd);
    }
    if (ready != 0) return ready;
  }
}

}  // namespace atl::hostile
