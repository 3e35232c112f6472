#include "microvm/initramfs.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace atl::microvm {
namespace {

size_t field(const std::string& archive, size_t entry, size_t index) {
  return std::stoul(archive.substr(entry + 6 + 8 * index, 8), nullptr, 16);
}

// As the kernel reads it: headers of text, name and bytes each padded to four.
std::map<std::string, std::string> files_of(const std::string& archive) {
  auto padded = [](size_t offset) { return (offset + 3) / 4 * 4; };
  std::map<std::string, std::string> files;
  for (size_t at = 0; at < archive.size();) {
    EXPECT_EQ(archive.substr(at, 6), "070701");
    size_t bytes = field(archive, at, 6), name_bytes = field(archive, at, 11);
    std::string name = archive.substr(at + 110, name_bytes - 1);
    if (name == "TRAILER!!!") return files;
    size_t data = padded(at + 110 + name_bytes);
    files[name] = archive.substr(data, bytes);
    at = padded(data + bytes);
  }
  ADD_FAILURE() << "the archive has no end";
  return files;
}

TEST(Initramfs, HoldsWhatWasAdded) {
  Initramfs archive;
  archive.add_directory("modules");
  archive.add_file("init", 0500, "12345");
  archive.add_file("modules/10.ko", 0400, std::string(4096, 'm'));
  archive.add_file("empty", 0400, "");
  auto files = files_of(std::move(archive).finish());
  EXPECT_EQ(files.size(), 4u);
  EXPECT_EQ(files["init"], "12345");
  EXPECT_EQ(files["modules/10.ko"], std::string(4096, 'm'));
  EXPECT_EQ(files["empty"], "");
}

TEST(Initramfs, AModuleThatIsPartOfTheKernelIsLeftOut) {
  Initramfs archive;
  ASSERT_TRUE(add_modules(archive, "/nonexistent").ok());
  EXPECT_EQ(files_of(std::move(archive).finish()).size(), 1u) << "the directory alone";
}

TEST(Modules, ComeAfterWhatTheyDependOn) {
  auto order = modules_in_order(
      "kernel/drivers/virtio/virtio_mmio.ko: kernel/drivers/virtio/virtio.ko "
      "kernel/drivers/virtio/virtio_ring.ko\n"
      "kernel/drivers/net/other.ko:\n"
      "kernel/fs/erofs/erofs.ko: kernel/lib/libcrc32c.ko\n"
      "not a line");
  std::vector<std::string> first(order.begin(), order.begin() + 3);
  EXPECT_EQ(first, (std::vector<std::string>{"kernel/drivers/virtio/virtio_ring.ko",
                                             "kernel/drivers/virtio/virtio.ko",
                                             "kernel/drivers/virtio/virtio_mmio.ko"}));
  auto at = [&](const char* name) { return std::find(order.begin(), order.end(), name); };
  EXPECT_LT(at("kernel/lib/libcrc32c.ko"), at("kernel/fs/erofs/erofs.ko"));
  EXPECT_NE(at("kernel/fs/overlayfs/overlay.ko"), order.end());
  EXPECT_EQ(at("kernel/drivers/net/other.ko"), order.end());
  EXPECT_EQ(modules_in_order("").size(), 6u) << "without a list";
}

}  // namespace
}  // namespace atl::microvm
