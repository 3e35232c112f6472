#include "builder/one_shot.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/file.h"

namespace atl::builder {
namespace {

constexpr size_t kStepBytes = 1 << 20;

// A pipe cannot be read twice, and a file that somebody else may still change is not to be read.
Result<Fd> copy_input(const Workshop& workshop) {
  ATOLL_TRY(Fd file, open_file(workshop.directory, O_RDWR | O_TMPFILE, 0600));
  std::vector<char> buffer(kStepBytes);
  while (true) {
    ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read the pack");
    if (count == 0) return file;
    ATOLL_TRY_VOID(write_all(file.get(), {buffer.data(), static_cast<size_t>(count)}));
  }
}

}  // namespace

Result<void> build_once(const Workshop& workshop, const std::string& out) {
  ATOLL_TRY(Fd pack, copy_input(workshop));
  ATOLL_TRY(KeptImage image, build_image(workshop, "once",
                                         {.operation = Operation::kPack,
                                          .flags = kWithCredentials,
                                          .file = pack.get(),
                                          .log = STDERR_FILENO}));
  ATOLL_TRY_VOID(make_directory(out, 0755));
  std::string name = image.digest.string() + ".erofs", target = out + "/image.erofs";
  if (renameat(workshop.images.get(), name.c_str(), AT_FDCWD, target.c_str()) != 0)
    return Error::system("move the image to " + target);
  ATOLL_TRY_VOID(replace_file(out + "/digest", image.digest.string() + "\n", 0644));
  fprintf(stderr, "%llu bytes, sha256 %s\n", static_cast<unsigned long long>(image.bytes),
          image.digest.string().c_str());
  return {};
}

}  // namespace atl::builder
