#include "linux/boot_id.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::linux {

Result<void> draw_boot_id(int directory) {
  std::array<unsigned char, 16> id = {};
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
    return Error::system("getrandom");
  id[6] = static_cast<unsigned char>((id[6] & 0x0f) | 0x40);  // a UUID of version 4
  id[8] = static_cast<unsigned char>((id[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < id.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
  text += '\n';
  ATOLL_TRY(Fd file, open_at(directory, kBootIdName, O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
  return write_all(file.get(), text);
}

}  // namespace atl::linux
