#include "agent/file_change.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_entry.h"
#include "agent/file_path.h"

namespace atl::agent {
namespace {

constexpr uint32_t kUsualDirectoryMode = 0755;

bool has(const FileRequest& request, FileFlag flag) { return (request.flags & bit(flag)) != 0; }

bool is_there(int directory, const std::string& name) {
  struct stat status;
  return fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<void> send_entry(int directory, const std::string& name, std::string_view path,
                        FileWire& wire) {
  ATOLL_TRY(FileEntry entry, read_entry(directory, name, std::string(trimmed(path))));
  return wire.send(encode_record(entry));
}

}  // namespace

Result<uint8_t> move_file(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Place from, find_place(request.path));
  ATOLL_TRY(auto parents, MissingDirectories::create(request.target));
  if (!has(request, FileFlag::kParents) && parents.missing())
    return file_error(ENOENT, "open", request.target);
  // Before directories are made for it.
  if (!is_there(from.directory.get(), from.name)) return file_error("stat");
  ATOLL_TRY(Fd to, parents.make());
  std::string name(last_part(request.target));
  unsigned flags = has(request, FileFlag::kReplace) ? 0 : RENAME_NOREPLACE;
  bool existed = is_there(to.get(), name);
  if (renameat2(from.directory.get(), from.name.c_str(), to.get(), name.c_str(), flags) != 0)
    return file_error("rename");
  parents.keep();
  ATOLL_TRY_VOID(send_entry(to.get(), name, request.target, wire));
  return existed ? bit(DoneFlag::kExisted) : uint8_t{0};
}

Result<uint8_t> make_directory_at(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(auto parents, MissingDirectories::create(request.path));
  if (!has(request, FileFlag::kParents) && parents.missing()) return file_error(ENOENT, "mkdir");
  ATOLL_TRY(Fd directory, parents.make());
  std::string name(last_part(request.path));
  bool made = mkdirat(directory.get(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return file_error("mkdir");
  parents.keep();
  Fd there = open_any(directory.get(), name, O_PATH | O_DIRECTORY | (made ? O_NOFOLLOW : 0));
  // Something else has the name.
  if (!there) return file_error(made ? errno : EEXIST, "mkdir");
  uint32_t mode = request.mode == 0 ? kUsualDirectoryMode : request.mode;
  if (made && chmod(descriptor_path(there.get()).c_str(), mode) != 0) return file_error("chmod");
  ATOLL_TRY(FileEntry entry, read_entry(there.get(), std::string(trimmed(request.path))));
  ATOLL_TRY_VOID(wire.send(encode_record(entry)));
  return made ? uint8_t{0} : bit(DoneFlag::kExisted);
}

Result<uint8_t> change_file(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Place place, find_place(request.path));
  Fd file = open_any(place.directory.get(), place.name, O_PATH);
  if (!file) return file_error("open");
  std::string self = descriptor_path(file.get());
  bool sets_mode = has(request, FileFlag::kSetMode);
  auto attributed = write_attributes(file.get(), request.attributes);
  // Attributes need the right to write, which either mode may lack.
  bool again = !attributed && attributed.error().system_errno() == EACCES && sets_mode;
  if (!attributed && !again) return std::move(attributed).error();
  if (sets_mode && chmod(self.c_str(), request.mode) != 0) return file_error("chmod");
  if (again) ATOLL_TRY_VOID(write_attributes(file.get(), request.attributes));
  ATOLL_TRY(FileEntry entry, read_entry(file.get(), place.path));
  ATOLL_TRY_VOID(read_attributes(file.get(), entry));
  ATOLL_TRY_VOID(wire.send(encode_record(entry)));
  return uint8_t{0};
}

}  // namespace atl::agent
