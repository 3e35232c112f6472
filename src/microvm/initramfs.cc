#include "microvm/initramfs.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::microvm {
namespace {

constexpr size_t kMaxModuleBytes = 4 << 20;

// In an order in which each finds what it depends on.
constexpr const char* kModules[] = {
    "drivers/virtio/virtio.ko",       "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio_mmio.ko",  "drivers/block/virtio_blk.ko",
    "drivers/char/virtio_console.ko", "drivers/char/hw_random/virtio-rng.ko",
    "lib/libcrc32c.ko",               "fs/erofs/erofs.ko",
    "fs/overlayfs/overlay.ko"};

}  // namespace

void Initramfs::pad() { bytes_.resize((bytes_.size() + 3) / 4 * 4, '\0'); }

void Initramfs::add(std::string_view name, unsigned mode, std::string_view bytes) {
  unsigned links = S_ISDIR(mode) ? 2 : 1;
  bytes_ += fmt::format("070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", ++number_, mode, 0, 0,
                        links, 0, bytes.size());
  bytes_ += fmt::format("{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", 0, 0, 0, 0, name.size() + 1, 0);
  bytes_ += name;
  bytes_ += '\0';
  pad();
  bytes_ += bytes;
  pad();
}

void Initramfs::add_directory(std::string_view name) { add(name, S_IFDIR | 0755, ""); }

void Initramfs::add_file(std::string_view name, unsigned mode, std::string_view bytes) {
  add(name, S_IFREG | mode, bytes);
}

std::string Initramfs::finish() && {
  add("TRAILER!!!", 0, "");
  return std::move(bytes_);
}

Result<void> add_modules(Initramfs& archive, const std::string& directory) {
  archive.add_directory(kGuestModules + 1);
  int number = 10;
  for (const char* path : kModules) {
    auto module = read_file(directory + "/kernel/" + path, kMaxModuleBytes);
    if (!module && module.error().system_errno() == ENOENT) continue;
    if (!module) return std::move(module).error();
    archive.add_file(fmt::format("{}/{}.ko", kGuestModules + 1, number++), 0400, *module);
  }
  return {};
}

}  // namespace atl::microvm
