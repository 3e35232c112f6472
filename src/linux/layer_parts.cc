#include "linux/layer_parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "linux/subvolume.h"

namespace atl::linux {
namespace {

// Names of marks that there were before have to stay known.
constexpr const char* kMarks[] = {"machine", "sentry"};

bool has(int layer, const std::string& name) {
  return faccessat(layer, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Outside of upper/, so nothing that runs in the sandbox can have written it.
Result<void> write_mark(int layer, const std::string& mark, uint64_t limit_bytes) {
  int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
  ATOLL_TRY(Fd file, open_at(layer, mark, flags, 0600));
  return write_all(file.get(), std::to_string(limit_bytes));
}

Result<uint64_t> read_mark(int layer, const std::string& mark) {
  ATOLL_TRY(std::string text, read_file_at(layer, mark));
  uint64_t bytes = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (parsed.ec != std::errc()) return Error::from_errno("the mark of a layer", EBADMSG);
  return bytes;
}

}  // namespace

Result<void> make_layer_parts(int layer, const std::string& mark, uint64_t limit_bytes,
                              LayerOrigin origin) {
  for (const char* other : kMarks)
    if (origin == LayerOrigin::kSnapshot && has(layer, other) != (mark == other))
      return Error::from_errno("files of another wall", EMEDIUMTYPE);
  for (const char* part : {"upper", "work"}) {
    if (mkdirat(layer, part, 0755) == 0) continue;
    if (origin == LayerOrigin::kNew || errno != EEXIST)
      return Error::system(std::string("mkdir ") + part);
  }
  return mark.empty() ? Result<void>() : write_mark(layer, mark, limit_bytes);
}

Result<void> make_room_for_disk(int layer, uint64_t charged_bytes) {
  const char* const* mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                         [layer](const char* name) { return has(layer, name); });
  if (mark == std::end(kMarks)) return {};
  ATOLL_TRY(uint64_t first_bytes, read_mark(layer, *mark));
  ATOLL_TRY(uint64_t limit_bytes, read_subvolume_limit(layer));
  uint64_t needed = charged_bytes + first_bytes;
  return needed > limit_bytes ? set_subvolume_limit(layer, needed) : Result<void>();
}

}  // namespace atl::linux
