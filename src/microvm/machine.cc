#include "microvm/machine.h"

#include <unistd.h>

#include <fmt/format.h>

#include "agent/channel_protocol.h"

namespace atl::microvm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

constexpr const char* kKernelWords =
    "quiet reboot=t panic=-1 no_timer_check cryptomgr.notests raid=noautodetect apparmor=0 ima=off "
    "audit=0";

// What the guest would find out by itself in seconds, and what it need not look for.
// Emulated: its own mitigations are for processors that speculate, which this one does not. Of the
// instructions that copy or fill at once QEMU does each step as if it stood alone, so loops of
// plain ones are quicker (see acceleration_of). The time stamps are the host's, whatever they look
// like to a guest that stood still: counting ticks instead, it would lose that time. With KVM its
// processor is the host's, which does speculate, and the host tells it the time (kvm-clock).
std::string kernel_command_line(const Machine& machine) {
  if (accelerator_of(machine.limits) == Accelerator::kKvm) return kKernelWords;
  return fmt::format(
      "{} mitigations=off nokaslr clearcpuid=rep_good tsc=reliable tsc_early_khz={} lpj={}",
      kKernelWords, machine.tsc_khz, machine.tsc_khz * 2);
}

struct Acceleration {
  const char *name, *processor, *option_roms;
};

// No second accelerator is named, so QEMU ends where the one is not to be had. With KVM the kernel
// is fetched by a ROM of QEMU's: the firmware alone was still reading it after a minute, in a guest
// of a guest, because the processor leaves it for each piece.
// Emulated: a processor that says its `rep movsb` is quick (erms, fsrm) has kernel and C library
// copy and clear byte by byte, five to nine times as slow; a fifth level of page tables (la57) is
// one more to walk for addresses that nobody has.
Acceleration acceleration_of(const agent::GuestLimits& limits) {
  if (accelerator_of(limits) == Accelerator::kKvm) return {"kvm", "host", "on"};
  return {"tcg,thread=multi,tb-size=64", "max,-erms,-fsrm,-la57", "off"};
}

void add_disk(std::vector<std::string>& words, const char* serial, const char* file) {
  bool writable = serial == std::string_view(kDiskSerial);
  words.push_back("-blockdev");
  words.push_back(fmt::format("driver=file,filename={},node-name={},locking=off,{}", file, serial,
                              writable ? "cache.no-flush=on,discard=unmap" : "read-only=on"));
  words.push_back("-device");
  words.push_back(fmt::format("virtio-blk-device,drive={0},serial={0}", serial));
}

std::string at_path(const char* name) { return fmt::format("path={}/{}", kSocketDirectory, name); }

// `where` is the other end.
void add_port(std::vector<std::string>& words, const char* name, const std::string& where) {
  for (std::string word :
       {std::string("-chardev"), fmt::format("socket,id={},{}", name, where),
        std::string("-device"), fmt::format("virtserialport,chardev={0},name={0}", name)})
    words.push_back(std::move(word));
}

}  // namespace

Accelerator accelerator_of(const agent::GuestLimits& limits) {
  bool hardware = limits.kind == agent::GuestKind::kHardwareMachine;
  return hardware ? Accelerator::kKvm : Accelerator::kTcg;
}

const char* state_file(Accelerator accelerator) {
  return accelerator == Accelerator::kKvm ? kHardwareStateFile : kStateFile;
}

uint64_t machine_memory_bytes(const agent::GuestLimits& limits) {
  return (limits.memory_bytes + kKernelMemoryBytes + kMiB - 1) / kMiB * kMiB;
}

std::vector<std::string> machine_command(const Machine& machine) {
  bool restored = machine.begins == Machine::Begins::kRestored;
  std::string size = fmt::format("{}M", machine_memory_bytes(machine.limits) / kMiB);
  Acceleration acceleration = acceleration_of(machine.limits);
  std::vector<std::string> words = {
      "qemu-system-x86_64", "-M",
      fmt::format("microvm,x-option-roms={},isa-serial=off,pit=on,pic=off,rtc=on,"
                  "memory-backend=memory",
                  acceleration.option_roms),
      "-accel", acceleration.name, "-cpu", acceleration.processor, "-m", size,
      // A file in memory: QEMU asks for huge pages of any other, of which the guest uses a part.
      "-object",
      fmt::format("memory-backend-file,id=memory,size={},mem-path=/proc/self/fd/0,share={}", size,
                  restored ? "off" : "on"),
      "-display", "none", "-no-reboot", "-no-user-config", "-nodefaults", "-chardev",
      "socket,id=monitor," + at_path(kMonitorSocket), "-mon", "chardev=monitor,mode=control"};
  if (restored) {
    words.insert(words.end(), {"-incoming", "defer"});
  } else {
    for (std::string word :
         {std::string("-kernel"), machine.kernel, std::string("-initrd"),
          std::string(kInitramfsFile), std::string("-append"), kernel_command_line(machine)})
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
