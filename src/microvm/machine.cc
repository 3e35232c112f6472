#include "microvm/machine.h"

#include <unistd.h>

#include <fmt/format.h>

#include "agent/channel_protocol.h"

namespace atl::microvm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// What the guest would find out by itself in seconds, and what it need not look for. Its own
// mitigations are for processors that speculate, which an emulated one does not. The time stamps
// are the host's, whatever they look like to a guest that stood still: counting ticks instead, it
// would lose that time.
std::string kernel_command_line(uint64_t tsc_khz) {
  return fmt::format(
      "quiet reboot=t panic=-1 mitigations=off nokaslr no_timer_check cryptomgr.notests "
      "raid=noautodetect apparmor=0 ima=off audit=0 tsc=reliable tsc_early_khz={} "
      "lpj={}",
      tsc_khz, tsc_khz * 2);
}

void add_disk(std::vector<std::string>& words, const char* serial, const char* file) {
  bool writable = serial == std::string_view(kDiskSerial);
  words.push_back("-blockdev");
  words.push_back(fmt::format("driver=file,filename={},node-name={},locking=off,{}", file, serial,
                              writable ? "cache.no-flush=on,discard=unmap" : "read-only=on"));
  words.push_back("-device");
  words.push_back(fmt::format("virtio-blk-device,drive={0},serial={0}", serial));
}

std::string at_path(const char* name) {
  return fmt::format("path={}/{}", kSocketDirectory, name);
}

// `where` is the other end.
void add_port(std::vector<std::string>& words, const char* name, const std::string& where) {
  for (std::string word :
       {std::string("-chardev"), fmt::format("socket,id={},{}", name, where),
        std::string("-device"), fmt::format("virtserialport,chardev={0},name={0}", name)})
    words.push_back(std::move(word));
}

}  // namespace

uint64_t machine_memory_bytes(const agent::GuestLimits& limits) {
  return (limits.memory_bytes + kKernelMemoryBytes + kMiB - 1) / kMiB * kMiB;
}

std::vector<std::string> machine_command(const Machine& machine) {
  bool restored = machine.begins == Machine::Begins::kRestored;
  std::string size = fmt::format("{}M", machine_memory_bytes(machine.limits) / kMiB);
  std::vector<std::string> words = {
      "qemu-system-x86_64", "-M",
      "microvm,x-option-roms=off,isa-serial=off,pit=on,pic=off,rtc=on,memory-backend=memory",
      "-accel", "tcg,thread=multi,tb-size=64", "-cpu", "max", "-m", size,
      // A file in memory: QEMU asks for huge pages of any other, of which the guest uses a part.
      "-object",
      fmt::format("memory-backend-file,id=memory,size={},mem-path=/proc/self/fd/0,share={}", size,
                  restored ? "off" : "on"),
      "-display", "none", "-no-reboot", "-no-user-config", "-nodefaults", "-chardev",
      "socket,id=monitor," + at_path(kMonitorSocket), "-mon", "chardev=monitor,mode=control"};
  if (restored) {
    words.insert(words.end(), {"-incoming", "defer"});
  } else {
    for (std::string word : {std::string("-kernel"), machine.kernel, std::string("-initrd"),
                             std::string(kInitramfsFile), std::string("-append"),
                             kernel_command_line(machine.tsc_khz)})
      words.push_back(std::move(word));
  }
  add_disk(words, kImageSerial, kImageFile);
  add_disk(words, kDiskSerial, kDiskFile);
  if (machine.has_toolbox) add_disk(words, kToolboxSerial, kToolboxFile);
  words.insert(words.end(), {"-device", "virtio-serial-device,max_ports=3"});
  add_port(words, kPortName, at_path(kPortSocket));
  add_port(words, kPassageName, fmt::format("fd={}", agent::kControlFd));
  for (const char* word :
       {"-object", "rng-builtin,id=random", "-device", "virtio-rng-device,rng=random", "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"})
    words.push_back(word);
  return words;
}

}  // namespace atl::microvm
