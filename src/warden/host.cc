#include "warden/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::warden {
namespace {

Result<Fd> open_trusted_directory(const std::string& path, unsigned mode) {
  ATOLL_TRY_VOID(make_directory(path, mode));
  ATOLL_TRY(Fd directory, open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat status;
  if (fstat(directory.get(), &status) != 0) return Error::system("stat " + path);
  if (status.st_uid != 0 || (status.st_mode & 022) != 0)
    return Error(Code::kDenied, path + " must belong to root and be writable by nobody else",
                 EPERM);
  return directory;
}

}  // namespace

std::string run_tag(std::string_view run_dir) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (unsigned char byte : run_dir) hash = (hash ^ byte) * 0x100000001b3;
  return fmt::format("{:016x}", hash).substr(0, 8);
}

Result<Host> open_host(const Options& options) {
  Host host;
  host.state_dir = options.state_dir;
  host.run_dir = options.run_dir;
  host.tag = run_tag(options.run_dir);
  host.client_uid = options.client_uid;
  host.pool_bytes = options.pool_bytes;
  host.kernel_memory_growth = options.kernel_memory_growth;
  ATOLL_TRY(host.cgroups, linux::read_cgroups());
  ATOLL_TRY([[maybe_unused]] Fd state, open_trusted_directory(options.state_dir, 0755));
  ATOLL_TRY(host.run, open_trusted_directory(options.run_dir, 0755));
  ATOLL_TRY(host.stored_images, open_trusted_directory(options.state_dir + "/images", 0755));
  ATOLL_TRY(host.isolates, open_trusted_directory(options.run_dir + "/isolates", 0700));
  ATOLL_TRY(host.images, open_trusted_directory(options.run_dir + "/images", 0700));
  std::string agents = options.run_dir + "/agents";
  ATOLL_TRY_VOID(make_directory(agents, 0700));
  ATOLL_TRY(host.agents, open_file(agents, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (options.mode == Mode::kServe && fchown(host.agents.get(), options.client_uid, -1u) != 0)
    return Error::system("chown " + agents);
  return host;
}

}  // namespace atl::warden
