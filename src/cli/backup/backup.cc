#include "cli/backup/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/backup/database_copy.h"
#include "cli/backup/state_files.h"
#include "cli/readable.h"
#include "cli/state_directory.h"
#include "linux/lock_file.h"
#include "store/sealed_tar.h"
#include "store/sha256.h"

namespace atl::cli::backup {
namespace {

namespace json = boost::json;
using store::TarEntry;

constexpr size_t kStepBytes = 256 * 1024;

std::string now_text() {
  time_t now = time(nullptr);
  struct tm parts;
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// A directory of the daemon's user for the copy of its database.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() { (void)remove_tree(path_).ok(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Result<void> make(const Identity& owner) {
    ATOLL_TRY_VOID(remove_tree(path_));  // of one that was killed
    ATOLL_TRY_VOID(make_directory(path_, 0700));
    if (chown(path_.c_str(), owner.uid, owner.gid) != 0) return Error::system("chown " + path_);
    return {};
  }

 private:
  std::string path_;
};

// The file under a name that says it is not whole, until it is.
class PartialFile {
 public:
  explicit PartialFile(std::string target) : target_(std::move(target)) {}
  ~PartialFile() {
    if (fd_) unlink(partial().c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  Result<void> open() {
    if (access(target_.c_str(), F_OK) == 0)
      return Error(Code::kConflict, target_ + " exists: choose another name");
    ATOLL_TRY(fd_, open_file(partial(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    if (fchmod(fd_.get(), 0600) != 0) return Error::system("chmod " + partial());
    return {};
  }
  Result<uint64_t> become_whole() {
    struct stat status;
    if (fsync(fd_.get()) != 0) return Error::system("fsync " + partial());
    if (fstat(fd_.get(), &status) != 0) return Error::system("stat " + partial());
    if (renameat2(AT_FDCWD, partial().c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) != 0)
      return Error::system("rename to " + target_);
    fd_.reset();
    ATOLL_TRY_VOID(sync_directory_of(target_));
    return static_cast<uint64_t>(status.st_size);
  }
  int fd() const { return fd_.get(); }

 private:
  std::string partial() const { return target_ + ".partial"; }
  std::string target_;
  Fd fd_;
};

// Adds files to the archive and keeps their sums.
class Packer {
 public:
  explicit Packer(store::SealedTarWriter& writer) : writer_(writer) {}

  Result<void> add_text(const std::string& name, const std::string& text) {
    TarEntry entry;
    entry.path = name;
    entry.mode = 0600;
    entry.size = text.size();
    ATOLL_TRY_VOID(writer_.begin(entry));
    return writer_.append(text);
  }

  Result<void> add(const StateFile& file) {
    TarEntry entry;
    entry.path = std::string(kStatePrefix) + file.path;
    entry.mode = find_rule(file.path)->file_mode;
    entry.size = file.size;
    entry.modified_ns = file.modified_ns;
    ATOLL_TRY_VOID(writer_.begin(entry));
    store::Sha256 digest;
    // As long as it was when it was opened: a log may grow meanwhile.
    for (uint64_t offset = 0; offset < file.size;) {
      size_t most = std::min<uint64_t>(piece_.size(), file.size - offset);
      ssize_t count = pread(file.fd, piece_.data(), most, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error::system("read " + file.path);
      if (count == 0)
        return Error(Code::kUnavailable, file.path + " became shorter meanwhile: try again");
      std::string_view bytes(piece_.data(), static_cast<size_t>(count));
      digest.update(bytes);
      ATOLL_TRY_VOID(writer_.append(bytes));
      offset += bytes.size();
    }
    sums_.insert_or_assign(entry.path, digest.finish());
    return {};
  }

  // That of the copy: a restored database and the file beside it say the same.
  Result<void> add_epoch(const store::Epoch& epoch) {
    std::string name = std::string(kStatePrefix) + std::string(kEpochPath);
    std::string bytes = store::EpochFile::bytes_of({epoch, "", 0});
    sums_.insert_or_assign(name, store::sha256(bytes));
    return add_text(name, bytes);
  }

  const Sums& sums() const { return sums_; }

 private:
  store::SealedTarWriter& writer_;
  Sums sums_;
  std::vector<char> piece_ = std::vector<char>(kStepBytes);
};

Result<void> add_database(Packer& packer, const std::string& copy, uid_t owner) {
  ATOLL_TRY(Fd fd, open_file(copy, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return Error::system("stat " + copy);
  if (!S_ISREG(status.st_mode) || status.st_uid != owner)
    return Error(Code::kDenied, copy + " is not the copy that was made");
  return packer.add(
      {std::string(kDatabasePath), fd.get(), static_cast<uint64_t>(status.st_size), 0});
}

json::array array_of(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

void print(const BackupReport& report, const BackupCommand& command, Format format) {
  if (format == Format::kJson)
    return print_json(json::object{{"file", command.file},
                                   {"files", report.files},
                                   {"bytes", report.bytes},
                                   {"schema_version", report.record.schema_version},
                                   {"has_images", command.images == BackupCommand::Images::kHold},
                                   {"sandboxes_that_ran", array_of(report.record.sandboxes)},
                                   {"unknown", array_of(report.unknown)}});
  printf("%s: %llu files, %s; it holds keys, so keep it as secret as they are\n",
         escape_controls(command.file).c_str(), static_cast<unsigned long long>(report.files),
         readable_size(report.bytes).c_str());
  if (command.images == BackupCommand::Images::kLeaveOut)
    printf("without images: add each template again after a restore\n");
  if (!report.record.sandboxes.empty())
    printf("%zu sandboxes run; a restore has their rows and output, not their files\n",
           report.record.sandboxes.size());
  for (const std::string& name : report.unknown)
    fprintf(stderr, "atoll: not in the backup, because it is not Atoll's: %s\n",
            escape_controls(name).c_str());
}

}  // namespace

Result<BackupReport> make_backup(const Places& places, const Identity& daemon,
                                 const BackupCommand& command) {
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock,
            linux::LockFile::acquire(places.state + "/backup.lock"));
  // No template may change its image meanwhile.
  ATOLL_TRY([[maybe_unused]] linux::LockFile templates,
            linux::LockFile::acquire(places.templates() + "/.lock"));
  std::string scratch_path = places.state + "/backup.tmp";
  Scratch scratch(scratch_path);
  ATOLL_TRY_VOID(scratch.make(daemon));
  // Before the logs: an exec that this database says has ended has a log that no longer grows.
  std::string copy = scratch_path + "/atoll.db";
  ATOLL_TRY(DatabaseCopy database,
            copy_database(places.state + "/" + std::string(kDatabasePath), copy, daemon));
  PartialFile target(command.file);
  ATOLL_TRY_VOID(target.open());
  ATOLL_TRY(store::SealedTarWriter writer, store::SealedTarWriter::open(target.fd()));
  Packer packer(writer);
  bool has_images = command.images == BackupCommand::Images::kHold;
  BackupReport report;
  report.record = {.atoll_version = ATOLL_VERSION,
                   .schema_version = database.schema_version,
                   .created_at = now_text(),
                   .images = has_images ? Record::Images::kHeld : Record::Images::kLeftOut,
                   .sandboxes = std::move(database.sandboxes)};
  ATOLL_TRY_VOID(packer.add_text(kRecordName, encode(report.record)));
  ATOLL_TRY_VOID(add_database(packer, copy, daemon.uid));
  if (!database.epoch.identity.empty()) ATOLL_TRY_VOID(packer.add_epoch(database.epoch));
  ATOLL_TRY_VOID(for_each_state_file(places, daemon, [&](const StateFile& file) -> Result<void> {
    if (!has_images && file.path.starts_with(kImagesPath)) return {};
    return packer.add(file);
  }));
  ATOLL_TRY_VOID(packer.add_text(kSumsName, encode(packer.sums())));
  ATOLL_TRY_VOID(writer.finish());
  report.files = packer.sums().size();
  ATOLL_TRY(report.unknown, unknown_names(places));
  ATOLL_TRY(report.bytes, target.become_whole());
  return report;
}

Result<int> run_command(const CommandLine& line, const BackupCommand& command) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll backup must run as root");
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  auto report = make_backup(line.places, daemon, command);
  if (!report) return std::move(report).error().with_context("back up " + line.places.state);
  print(*report, command, line.format);
  return 0;
}

}  // namespace atl::cli::backup
