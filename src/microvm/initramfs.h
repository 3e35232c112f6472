// The first file system of a guest: an archive in cpio's "newc" form that the kernel unpacks into
// memory. In it are this very program as /init, what it needs to reach its disks, and what it is
// told about its sandbox.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::microvm {

// Where the guest finds what the keeper has put there.
inline constexpr const char* kGuestBirth = "/birth";  // an agent::BirthRecord
inline constexpr const char* kGuestSudo = "/sudo";
inline constexpr const char* kGuestModules = "/modules";  // loaded in the order of their names

class Initramfs {
 public:
  void add_directory(std::string_view name);
  void add_file(std::string_view name, unsigned mode, std::string_view bytes);
  // The archive.
  std::string finish() &&;

 private:
  void add(std::string_view name, unsigned mode, std::string_view bytes);
  void pad();

  std::string bytes_;
  unsigned number_ = 0;
};

// Their paths in an order in which each finds what it depends on, by the kernel's list of that
// ("modules.dep").
std::vector<std::string> modules_in_order(std::string_view dependencies);
// The drivers that a guest needs, from the kernel's directory of modules ("/usr/lib/modules/6.1…").
// One that is not there is part of the kernel.
Result<void> add_modules(Initramfs& archive, const std::string& directory);

}  // namespace atl::microvm
