#include "microvm/initramfs.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::microvm {
namespace {

constexpr size_t kMaxModuleBytes = 4 << 20;

constexpr size_t kMaxListBytes = 16 << 20;

// What is not there is part of the kernel.
constexpr const char* kModules[] = {"kernel/drivers/virtio/virtio_mmio.ko",
                                    "kernel/drivers/block/virtio_blk.ko",
                                    "kernel/drivers/char/virtio_console.ko",
                                    "kernel/drivers/char/hw_random/virtio-rng.ko",
                                    "kernel/fs/erofs/erofs.ko",
                                    "kernel/fs/overlayfs/overlay.ko"};

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  return words;
}

}  // namespace

std::vector<std::string> modules_in_order(std::string_view dependencies) {
  std::map<std::string, std::vector<std::string>, std::less<>> needs;
  while (!dependencies.empty()) {
    size_t end = std::min(dependencies.find('\n'), dependencies.size());
    std::string_view line = dependencies.substr(0, end);
    dependencies.remove_prefix(std::min(dependencies.size(), end + 1));
    size_t colon = line.find(':');
    if (colon != line.npos)
      needs.emplace(line.substr(0, colon), split_words(line.substr(colon + 1)));
  }
  std::vector<std::string> order;
  auto add = [&order](const std::string& name) {
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  };
  for (const char* module : kModules) {
    auto found = needs.find(module);
    // What a line names last has to be there first.
    if (found != needs.end()) std::for_each(found->second.rbegin(), found->second.rend(), add);
    add(module);
  }
  return order;
}

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
  auto dependencies = read_file(directory + "/modules.dep", kMaxListBytes);
  if (!dependencies && dependencies.error().system_errno() != ENOENT)
    return std::move(dependencies).error();
  int number = 10;
  for (const std::string& path : modules_in_order(dependencies ? *dependencies : "")) {
    auto module = read_file(directory + "/" + path, kMaxModuleBytes);
    if (!module && module.error().system_errno() == ENOENT) continue;
    if (!module) return std::move(module).error();
    archive.add_file(fmt::format("{}/{}.ko", kGuestModules + 1, number++), 0400, *module);
  }
  return {};
}

}  // namespace atl::microvm
