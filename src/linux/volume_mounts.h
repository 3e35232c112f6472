// Volumes: subvolumes with a limit of their own, which are mounted at a path of one or more
// isolates; and which of them an isolate has, in a form of a fixed size that one process can tell
// another.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/volume_id.h"

namespace atl::linux {

inline constexpr size_t kMaxVolumes = 8;  // of one isolate
inline constexpr size_t kMaxVolumePathBytes = 103;

// Absolute, without empty, `.` and `..` parts, of letters, digits and `._+@-`; not the root.
bool is_volume_path(std::string_view path);

struct VolumeMount {
  std::array<char, VolumeId::kLength> volume;
  uint8_t read_only;  // 0 or 1
  uint8_t reserved[3];
  std::array<char, kMaxVolumePathBytes + 1> path;  // is_volume_path(), then zeros

  std::string name() const { return {volume.data(), volume.size()}; }
  std::string target() const { return path.data(); }
};

struct VolumeMounts {
  uint64_t count;  // how many of the list are used; the others are zero
  std::array<VolumeMount, kMaxVolumes> list;

  std::span<const VolumeMount> mounts() const { return std::span(list).first(count); }
  // Every field, for one that somebody else has written.
  Result<void> check() const;
};
static_assert(std::is_trivially_copyable_v<VolumeMounts> && sizeof(VolumeMounts) == 1032);

// Empty, for everybody inside to write to; on disk when this returns.
Result<void> create_volume(int pool, const std::string& name, uint64_t limit_bytes);

// Detached copies of the mounts of those volumes, in the order of the list, with their owners as
// the user namespace has them; no set-user-id bit and no device in them counts.
Result<std::vector<Fd>> clone_volumes(const std::string& pool, const VolumeMounts& volumes,
                                      int user_namespace);

// Attaches each to its path beneath `root`, which is made if it is not there. Refused: a path with
// a link or something else than directories in it, or into what is mounted already.
Result<void> attach_volumes(int root, const VolumeMounts& volumes, std::span<const Fd> trees);

}  // namespace atl::linux
