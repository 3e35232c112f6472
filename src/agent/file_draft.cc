#include "agent/file_draft.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_path.h"
#include "agent/file_wire.h"

namespace atl::agent {
namespace {

constexpr unsigned kFirstMode = 0600;
constexpr int kMaxAttempts = 16;  // drafts of one name at a time

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (unsigned char byte : text) hash = (hash ^ byte) * 1099511628211ull;
  return hash;
}

// Left by a worker that was killed: nobody holds the lock that every draft has.
void remove_if_left(int directory, const std::string& name) {
  Fd file(openat(directory, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlinkat(directory, name.c_str(), 0);
}

}  // namespace

std::string hidden_name(std::string_view name, int attempt) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hidden = ".atoll-";
  for (uint64_t hash = hash_of(name), i = 0; i < 16; ++i, hash >>= 4) hidden += kDigits[hash & 15];
  return hidden + "-" + std::to_string(attempt);
}

Result<FileDraft> FileDraft::create(int directory, std::string_view name) {
  FileDraft draft;
  // Overlays have nameless files since Linux 6.3.
  draft.file_ = Fd(openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kFirstMode));
  bool unsupported = errno == EOPNOTSUPP || errno == EISDIR;
  if (!draft.file_ && !unsupported) return file_error("create");
  if (!draft.file_) ATOLL_TRY_VOID(draft.take_hidden_name(directory, name));
  if (flock(draft.file_.get(), LOCK_EX | LOCK_NB) != 0) return file_error("lock");
  return draft;
}

FileDraft::~FileDraft() {
  if (!hidden_name_.empty()) unlinkat(hidden_directory_.get(), hidden_name_.c_str(), 0);
}

Result<void> FileDraft::take_hidden_name(int directory, std::string_view name) {
  hidden_directory_ = Fd(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!hidden_directory_) return file_error("dup");
  for (int i = 0; i < 2 * kMaxAttempts; ++i) {
    std::string hidden = hidden_name(name, i / 2);
    file_ =
        Fd(openat(directory, hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFirstMode));
    if (!file_ && errno != EEXIST) return file_error("create");
    if (file_) {
      hidden_name_ = hidden;
      return {};
    }
    remove_if_left(directory, hidden);
  }
  return file_error(EBUSY, "create");
}

Result<void> FileDraft::append(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<Published> FileDraft::publish(int directory, const std::string& name, Existing existing) {
  // linkat with an empty path would need a capability.
  std::string self = descriptor_path(file_.get());
  if (linkat(AT_FDCWD, self.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return Published::kNew;
  if (errno != EEXIST) return file_error("link");
  if (existing == Existing::kKeep) return file_error(EEXIST, "link");
  if (hidden_name_.empty()) ATOLL_TRY_VOID(link_hidden(directory, name));
  if (renameat(hidden_directory_.get(), hidden_name_.c_str(), directory, name.c_str()) != 0)
    return file_error("rename");
  hidden_name_.clear();
  return Published::kReplaced;
}

Result<void> FileDraft::link_hidden(int directory, std::string_view name) {
  hidden_directory_ = Fd(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!hidden_directory_) return file_error("dup");
  std::string self = descriptor_path(file_.get());
  for (int i = 0; i < 2 * kMaxAttempts; ++i) {
    std::string hidden = hidden_name(name, i / 2);
    if (linkat(AT_FDCWD, self.c_str(), directory, hidden.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      hidden_name_ = hidden;
      return {};
    }
    if (errno != EEXIST) return file_error("link");
    remove_if_left(directory, hidden);
  }
  return file_error(EBUSY, "link");
}

}  // namespace atl::agent
