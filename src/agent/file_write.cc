#include "agent/file_write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_draft.h"
#include "agent/file_entry.h"
#include "agent/file_path.h"

namespace atl::agent {
namespace {

constexpr uint32_t kUsualMode = 0644;

Result<void> receive_into(FileDraft& draft, FileWire& wire) {
  while (true) {
    ATOLL_TRY(FileRecord record, wire.receive());
    if (record.type == RecordType::kDone) return {};
    if (record.type != RecordType::kBytes) return malformed("record in a");
    ATOLL_TRY_VOID(draft.append(record.payload));
  }
}

// What can be known before the first byte is worth knowing then.
Result<void> check_name(int directory, const std::string& name, Existing existing) {
  struct stat status;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return file_error("stat");
  }
  if (S_ISDIR(status.st_mode)) return file_error(EISDIR, "open");
  if (existing == Existing::kKeep) return file_error(EEXIST, "open");
  return {};
}

}  // namespace

Result<uint8_t> write_file(const FileRequest& request, FileWire& wire) {
  bool makes_parents = (request.flags & bit(FileFlag::kParents)) != 0;
  bool replaces = (request.flags & bit(FileFlag::kReplace)) != 0;
  Existing existing = replaces ? Existing::kReplace : Existing::kKeep;
  ATOLL_TRY(auto parents, MissingDirectories::create(request.path));
  if (!makes_parents && parents.missing()) return file_error(ENOENT, "open");
  std::string name(last_part(request.path));
  if (!parents.missing()) ATOLL_TRY_VOID(check_name(parents.nearest(), name, existing));
  ATOLL_TRY(FileDraft draft, FileDraft::create(parents.nearest(), name));
  ATOLL_TRY_VOID(receive_into(draft, wire));
  // Before the mode, which may forbid writing.
  ATOLL_TRY_VOID(write_attributes(draft.fd(), request.attributes));
  if (fchmod(draft.fd(), request.mode == 0 ? kUsualMode : request.mode) != 0)
    return file_error("chmod");
  ATOLL_TRY(Fd directory, parents.make());
  ATOLL_TRY(Published published, draft.publish(directory.get(), name, existing));
  parents.keep();
  ATOLL_TRY(FileEntry entry, read_entry(draft.fd(), std::string(trimmed(request.path))));
  ATOLL_TRY_VOID(wire.send(encode_record(entry)));
  return published == Published::kReplaced ? bit(DoneFlag::kExisted) : uint8_t{0};
}

}  // namespace atl::agent
