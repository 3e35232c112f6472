#include "builder/kernel_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "base/file.h"

namespace atl::builder {
namespace {

constexpr size_t kMaxPackedBytes = 64 << 20;
constexpr size_t kMaxKernelBytes = 256 << 20;
constexpr size_t kMaxBlockBytes = 8 << 20;  // that one packed block holds
constexpr uint32_t kLz4Magic = 0x184c2102;
constexpr size_t kSectorBytes = 512;
constexpr size_t kSetupSectorsAt = 0x1f1;
constexpr size_t kPayloadOffsetAt = 0x248;
constexpr size_t kPayloadLengthAt = 0x24c;

Error malformed() { return Error(Code::kUnsupported, "the kernel is not packed with LZ4"); }

// Nothing: it is not there.
Result<uint32_t> number_at(std::string_view bytes, size_t offset) {
  uint32_t number;
  if (bytes.size() < sizeof number || offset > bytes.size() - sizeof number) return malformed();
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// A length of 15 goes on in bytes of at most 255 each.
Result<size_t> read_length(std::string_view& block, size_t first) {
  if (first != 15) return first;
  while (true) {
    if (block.empty() || first > kMaxBlockBytes) return malformed();
    auto more = static_cast<unsigned char>(block.front());
    block.remove_prefix(1);
    first += more;
    if (more != 255) return first;
  }
}

// One block: literals, then a copy of what was written before, again and again.
Result<void> unpack_block(std::string_view block, std::string& out) {
  size_t begin = out.size();
  while (!block.empty()) {
    auto token = static_cast<unsigned char>(block.front());
    block.remove_prefix(1);
    ATOLL_TRY(size_t literals, read_length(block, token >> 4));
    if (literals > block.size()) return malformed();
    out.append(block.substr(0, literals));
    block.remove_prefix(literals);
    if (block.empty()) return {};
    if (block.size() < 2) return malformed();
    size_t distance = static_cast<unsigned char>(block[0]) +
                      (static_cast<size_t>(static_cast<unsigned char>(block[1])) << 8);
    block.remove_prefix(2);
    ATOLL_TRY(size_t length, read_length(block, token & 15));
    length += 4;
    bool sound = distance > 0 && distance <= out.size() - begin &&
                 out.size() - begin + length <= kMaxBlockBytes;
    if (!sound) return malformed();
    for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  }
  return {};
}

Result<std::string> unpack_lz4(std::string_view packed) {
  ATOLL_TRY(uint32_t magic, number_at(packed, 0));
  if (magic != kLz4Magic) return malformed();
  packed.remove_prefix(sizeof magic);
  std::string out;
  while (!packed.empty()) {
    ATOLL_TRY(uint32_t bytes, number_at(packed, 0));
    packed.remove_prefix(sizeof bytes);
    // Behind the last block comes the size of it all.
    if (packed.empty()) return out;
    if (bytes > packed.size() || out.size() > kMaxKernelBytes) return malformed();
    ATOLL_TRY_VOID(unpack_block(packed.substr(0, bytes), out));
    packed.remove_prefix(bytes);
  }
  return out;
}

// Empty: there is none.
std::string find_packed(int boot) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(dup(boot)), closedir);
  if (!entries) return "";
  while (const dirent* entry = readdir(entries.get()))
    if (std::string_view(entry->d_name).starts_with("vmlinuz-")) return entry->d_name;
  return "";
}

}  // namespace

Result<std::string> unpack_kernel(std::string_view packed) {
  if (packed.size() <= kPayloadLengthAt) return malformed();
  size_t sectors = static_cast<unsigned char>(packed[kSetupSectorsAt]);
  ATOLL_TRY(uint32_t offset, number_at(packed, kPayloadOffsetAt));
  ATOLL_TRY(uint32_t length, number_at(packed, kPayloadLengthAt));
  size_t begin = (sectors + 1) * kSectorBytes + offset;
  if (begin > packed.size() || length > packed.size() - begin) return malformed();
  ATOLL_TRY(std::string kernel, unpack_lz4(packed.substr(begin, length)));
  if (!kernel.starts_with("\177ELF")) return malformed();
  return kernel;
}

Result<void> add_unpacked_kernel(int root) {
  auto boot = open_at(root, "boot", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!boot && boot.error().code() != Code::kNotFound) return std::move(boot).error();
  std::string name = boot ? find_packed(boot->get()) : "";
  if (name.empty()) return {};  // what runs gVisor needs none
  ATOLL_TRY(Fd file, open_at(boot->get(), name, O_RDONLY | O_NOFOLLOW));
  ATOLL_TRY(std::string packed, read_all(file.get(), kMaxPackedBytes));
  auto kernel = unpack_kernel(packed);
  if (!kernel) {
    printf("%s; each boot unpacks it\n", kernel.error().message().c_str());
    return {};
  }
  ATOLL_TRY(Fd target, open_at(boot->get(), "vmlinux", O_WRONLY | O_CREAT | O_EXCL, 0644));
  return write_all(target.get(), *kernel);
}

}  // namespace atl::builder
