#include "cli/backup/restore.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <vector>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/backup/database_copy.h"
#include "cli/backup/state_files.h"
#include "cli/host.h"
#include "cli/readable.h"
#include "cli/state_directory.h"
#include "linux/lock_file.h"
#include "store/sealed_tar.h"
#include "store/sha256.h"
#include "store/tar_reader.h"

namespace atl::cli::backup {
namespace {

namespace json = boost::json;
using store::TarEntry;
using store::TarOrigin;
using store::TarReader;

constexpr size_t kStepBytes = 256 * 1024;

Result<void> refuse_running(const Places& places, const Identity& daemon) {
  Host host(places, "", daemon);
  ATOLL_TRY(auto supervisor, host.supervisor());
  ATOLL_TRY(auto warden, host.warden());
  ATOLL_TRY(auto atolld, host.daemon());
  if (!supervisor && !warden && !atolld) return {};
  return Error(Code::kConflict, "Atoll is up in " + places.state + "\n  remedy: atoll down");
}

Result<void> refuse_contents(const std::string& state) {
  std::error_code error;
  bool is_there = std::filesystem::exists(state, error);
  if (!error && is_there && std::filesystem::is_empty(state, error)) is_there = false;
  if (error) return Error::from_errno("look at " + state, error.value());
  if (!is_there) return {};
  return Error(Code::kConflict, state +
                                    " is not empty: a restore replaces nothing\n  remedy: "
                                    "move it away, or choose another --state-dir");
}

// A new state directory beside the one that it will become, gone again unless it does.
class Staging {
 public:
  Staging(std::string state, const Identity& daemon)
      : state_(std::move(state)), path_(state_ + ".restoring"), daemon_(daemon) {}
  ~Staging() {
    (void)remove_tree(path_).ok();
    if (lock_) unlink(lock_path().c_str());
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  Result<void> make() {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(state_).parent_path(), error);
    if (error) return Error::from_errno("make the parent of " + state_, error.value());
    ATOLL_TRY(lock_, linux::LockFile::acquire(lock_path()));
    ATOLL_TRY_VOID(remove_tree(path_));  // of one that was killed
    return make_directory(path_, 0700);
  }

  // A file and the directories above it, with the owner and modes that its rule names.
  Result<Fd> create(const std::string& path, const StateRule& rule) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      ATOLL_TRY_VOID(make_inner(path.substr(0, slash)));
    std::string full = path_ + "/" + path;
    ATOLL_TRY(Fd fd, open_file(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    Identity owner = owner_of(rule);
    if (fchown(fd.get(), owner.uid, owner.gid) != 0) return Error::system("chown " + full);
    if (fchmod(fd.get(), rule.file_mode) != 0) return Error::system("chmod " + full);
    return fd;
  }

  Result<void> become_state() {
    if (chmod(path_.c_str(), 0755) != 0) return Error::system("chmod " + path_);
    ATOLL_TRY(Fd top, open_file(path_, O_RDONLY | O_DIRECTORY));
    if (syncfs(top.get()) != 0) return Error::system("sync " + path_);
    // Replaces an empty directory and nothing else.
    if (rename(path_.c_str(), state_.c_str()) != 0)
      return Error::system("rename " + path_ + " to " + state_);
    return sync_directory_of(state_);
  }

 private:
  std::string lock_path() const { return path_ + ".lock"; }
  Identity owner_of(const StateRule& rule) const {
    return rule.owner == Owner::kDaemon ? daemon_ : Identity{0, 0};
  }

  Result<void> make_inner(const std::string& path) {
    const StateRule* rule = find_directory_rule(path);
    ATOLL_CHECK(rule != nullptr);
    std::string full = path_ + "/" + path;
    if (mkdir(full.c_str(), 0700) != 0)
      return errno == EEXIST ? Result<void>() : Error::system("mkdir " + full);
    Identity owner = owner_of(*rule);
    if (chown(full.c_str(), owner.uid, owner.gid) != 0) return Error::system("chown " + full);
    if (chmod(full.c_str(), rule->directory_mode) != 0) return Error::system("chmod " + full);
    return {};
  }

  std::string state_;
  std::string path_;
  Identity daemon_;
  std::optional<linux::LockFile> lock_;
};

// Takes the archive apart, from its record to its sums.
class Unpacker {
 public:
  Unpacker(TarReader& reader, Staging& staging) : reader_(reader), staging_(staging) {}

  Result<Record> take_record() {
    ATOLL_TRY(std::optional<TarEntry> first, reader_.next());
    if (!first || first->path != kRecordName) return Error(Code::kCorrupt, "it is not a backup");
    ATOLL_TRY(std::string text, read_text(*first));
    ATOLL_TRY(Record record, decode_record(text));
    if (record.schema_version > known_schema_version())
      return Error(Code::kUnsupported,
                   "it has schema version " + std::to_string(record.schema_version) +
                       ", this program knows up to " + std::to_string(known_schema_version()) +
                       "\n  remedy: restore it with atoll " + record.atoll_version + " or later");
    return record;
  }

  Result<void> take_files() {
    while (true) {
      ATOLL_TRY(std::optional<TarEntry> entry, reader_.next());
      if (!entry) return Error(Code::kCorrupt, "it ends without sums");
      if (entry->path == kSumsName) return check_sums(*entry);
      ATOLL_TRY_VOID(take_file(*entry));
    }
  }

  const Sums& sums() const { return sums_; }

 private:
  Result<std::string> read_text(const TarEntry& entry) {
    if (entry.type != TarEntry::Type::kFile || entry.size > kMaxRecordBytes)
      return Error(Code::kCorrupt, entry.path + " in it is not what has to be there");
    std::string text(entry.size, '\0');
    for (size_t done = 0; done < text.size();) {
      ATOLL_TRY(size_t count, reader_.read({text.data() + done, text.size() - done}));
      if (count == 0) return Error(Code::kCorrupt, entry.path + " in it is cut short");
      done += count;
    }
    return text;
  }

  Result<void> take_file(const TarEntry& entry) {
    std::string_view path = entry.path;
    bool is_state = path.starts_with(kStatePrefix);
    if (is_state) path.remove_prefix(kStatePrefix.size());
    const StateRule* rule = is_state ? find_rule(path) : nullptr;
    if (rule == nullptr || entry.type != TarEntry::Type::kFile)
      return Error(Code::kCorrupt, "it holds " + entry.path + ", which no backup does");
    ATOLL_TRY(Fd file, staging_.create(std::string(path), *rule));
    store::Sha256 digest;
    while (true) {
      ATOLL_TRY(size_t count, reader_.read(piece_));
      if (count == 0) break;
      digest.update({piece_.data(), count});
      ATOLL_TRY_VOID(write_all(file.get(), {piece_.data(), count}));
    }
    sums_.insert_or_assign(entry.path, digest.finish());
    return {};
  }

  Result<void> check_sums(const TarEntry& entry) {
    ATOLL_TRY(std::string text, read_text(entry));
    if (text != encode(sums_)) return Error(Code::kCorrupt, "a file in it is not as it was");
    if (!sums_.contains(std::string(kStatePrefix) + std::string(kDatabasePath)))
      return Error(Code::kCorrupt, "it has no database");
    ATOLL_TRY(std::optional<TarEntry> more, reader_.next());
    if (more) return Error(Code::kCorrupt, "it goes on after its end");
    return {};
  }

  TarReader& reader_;
  Staging& staging_;
  Sums sums_;
  std::vector<char> piece_ = std::vector<char>(kStepBytes);
};

void print(const RestoreReport& report, const Places& places, Format format) {
  const Record& record = report.record;
  if (format == Format::kJson)
    return print_json(json::object{
        {"state_dir", places.state},
        {"files", report.files},
        {"created_at", record.created_at},
        {"atoll_version", record.atoll_version},
        {"has_images", record.images == Record::Images::kHeld},
        {"sandboxes_that_ran", json::array(record.sandboxes.begin(), record.sandboxes.end())}});
  printf("%s: %llu files of a backup made %s by atoll %s\n", places.state.c_str(),
         static_cast<unsigned long long>(report.files), escape_controls(record.created_at).c_str(),
         escape_controls(record.atoll_version).c_str());
  if (record.images == Record::Images::kLeftOut)
    printf("it came without images: add each template again before the first sandbox\n");
  if (!record.sandboxes.empty())
    printf("%zu sandboxes ran then; they will be `failed`, with their rows and output\n",
           record.sandboxes.size());
}

}  // namespace

Result<RestoreReport> restore_backup(const Places& places, const Identity& daemon,
                                     const std::string& file) {
  ATOLL_TRY_VOID(refuse_running(places, daemon));
  ATOLL_TRY_VOID(refuse_contents(places.state));
  ATOLL_TRY(Fd fd, open_file(file, O_RDONLY));
  // Before anything takes its bytes apart.
  ATOLL_TRY_VOID(store::check_seal(fd.get()));
  Staging staging(places.state, daemon);
  ATOLL_TRY_VOID(staging.make());
  ATOLL_TRY(TarReader reader, TarReader::open(fd.get(), TarOrigin::kSealed));
  Unpacker unpacker(reader, staging);
  RestoreReport report;
  ATOLL_TRY(report.record, unpacker.take_record());
  ATOLL_TRY_VOID(unpacker.take_files());
  ATOLL_TRY_VOID(staging.become_state());
  report.files = unpacker.sums().size();
  return report;
}

Result<int> run_command(const CommandLine& line, const RestoreCommand& command) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll restore must run as root");
  umask(022);
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  auto report = restore_backup(line.places, daemon, command.file);
  if (!report) return std::move(report).error().with_context("restore " + command.file);
  print(*report, line.places, line.format);
  return 0;
}

}  // namespace atl::cli::backup
