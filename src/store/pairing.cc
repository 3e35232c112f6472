#include "store/pairing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/ids.h"
#include "store/catalog.h"
#include "store/migrations.h"

namespace atl::store {
namespace {

namespace fs = std::filesystem;

constexpr int kStoredTries = 5;
constexpr std::chrono::milliseconds kStoredPause{50};
constexpr const char* kRemedy =
    "\n  remedy: put the newest database back; or `atoll restore` a backup into another "
    "--state-dir; or `atoll up --adopt-orphans`, which sets aside for a week what its rows do not "
    "name";

Error mismatch(const PairedPlaces& places, const std::string& found) {
  return Error(Code::kConflict, "the database " + places.database() + " and the files beside it " +
                                    "do not belong together: " + found + "; nothing was touched" +
                                    kRemedy)
      .with_reason("database_mismatch");
}

// Files, at any depth; but those of a name that begins with a dot.
Result<size_t> count_files(const std::string& directory) {
  size_t files = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (!entry->is_directory() && entry->path().filename().string()[0] != '.') ++files;
  if (error && error.value() != ENOENT)
    return Error::from_errno("list " + directory, error.value());
  return files;
}

// What only a database can explain: "14 blobs, 2 packs"; empty: nothing.
Result<std::string> find_files(const PairedPlaces& places) {
  std::string found;
  for (const char* kind : {"blobs", "packs", "outputs"}) {
    ATOLL_TRY(size_t files, count_files(places.daemon_directory + "/" + kind));
    if (files == 0) continue;
    found += (found.empty() ? "" : ", ") + std::to_string(files) + " " + kind;
  }
  return found;
}

// An empty file is what a start leaves that was killed at once, and what is left of one that was
// cut off: SQLite takes it for a new database, and removes its log.
Result<bool> is_database_there(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) return status.st_size > 0;
  if (errno == ENOENT) return false;
  return Error::system("stat database " + path);
}

Result<void> check_absent(const PairedPlaces& places, const std::optional<EpochMark>& mark) {
  ATOLL_TRY(std::string files, find_files(places));
  struct stat log;
  bool has_log = stat((places.database() + "-wal").c_str(), &log) == 0 && log.st_size > 0;
  if (!mark && files.empty() && !has_log) return {};
  std::string found = "there is no database";
  if (mark) found += ", the one before had " + std::to_string(mark->epoch.synced) + " changes";
  if (has_log) found += ", its log atoll.db-wal is there";
  if (!files.empty()) found += ", there are " + files;
  return mismatch(places, found);
}

// Where it says which files are needed. All of a large database would take too long for a start,
// and a fault elsewhere removes nothing.
Result<void> check_tables(Database& database) {
  ATOLL_TRY(
      Query query,
      database.query("SELECT s.name, c.integrity_check FROM sqlite_schema AS s, "
                     "pragma_integrity_check(s.name) AS c WHERE s.type = 'table' AND s.name IN "
                     "('tenants', 'keys', 'sandboxes', 'snapshots', 'volumes', 'templates', "
                     "'template_tags', 'sequence', 'epoch') AND c.integrity_check <> 'ok'"));
  ATOLL_TRY(bool found, query.next());
  if (!found) return {};
  std::string table = query.text();
  return Error(Code::kCorrupt, "the database " + database.path() + " is damaged: " + table + ": " +
                                   query.text() + "; nothing was touched" + kRemedy)
      .with_reason("database_damaged");
}

Result<void> check_row(const PairedPlaces& places, const EpochRow& row,
                       const std::optional<EpochMark>& mark) {
  bool was_paired = row.pairing == Pairing::kPaired || row.pairing == Pairing::kSettingAside;
  if (!mark)
    return was_paired ? mismatch(places, "there is no epoch file " + places.epoch_file)
                      : Result<void>();
  const Epoch& known = mark->epoch;
  if (row.epoch.identity != known.identity)
    return mismatch(places, "it is another database (" + row.epoch.identity + " in place of " +
                                known.identity + ")");
  ATOLL_TRY(std::string boot, read_boot_id());
  bool is_older = row.epoch.synced < known.synced;
  bool lacks_sandboxes = mark->boot == boot && row.epoch.running < known.running;
  if (!is_older && !lacks_sandboxes) return {};
  return mismatch(
      places,
      "it is an older copy, or has lost its last rows: " + std::to_string(row.epoch.synced) +
          " changes of " + std::to_string(known.synced) + ", " + std::to_string(row.epoch.running) +
          " of sandboxes of " + std::to_string(known.running));
}

Result<void> check_opened(const PairedPlaces& places, Database& database,
                          const std::optional<EpochMark>& mark) {
  ATOLL_TRY_VOID(check_tables(database));
  ATOLL_TRY_VOID(check_migratable(database, catalog_migrations()));
  ATOLL_TRY(bool has, has_epoch(database));
  if (!has && !mark) return {};  // of an older version: the next start pairs them
  if (!has) return mismatch(places, "it is a copy from before it had an epoch");
  ATOLL_TRY(EpochRow row, read_epoch(database));
  return check_row(places, row, mark);
}

// A log that was left beside another file would be taken for its own, and make it look new.
Result<void> check_stored(const PairedPlaces& places, const EpochMark& mark) {
  if (mark.stored == 0) return {};
  std::optional<Epoch> stored;
  // While it is served by another process, a page may be half written.
  for (int tries = 0; tries < kStoredTries; ++tries) {
    stored = find_stored_epoch(places.database());
    bool fits = stored && stored->identity == mark.epoch.identity && stored->synced >= mark.stored;
    if (fits) return {};
    std::this_thread::sleep_for(kStoredPause);
  }
  return mismatch(
      places, stored ? "its file is another, or an older copy: " + std::to_string(stored->synced) +
                           " changes of " + std::to_string(mark.stored)
                     : std::string("its file has no epoch: it is damaged, or is none"));
}

}  // namespace

Result<std::string> read_boot_id() {
  ATOLL_TRY(std::string text, read_file("/proc/sys/kernel/random/boot_id"));
  return text.substr(0, text.find('\n'));
}

Result<void> check_pair(const PairedPlaces& places) {
  auto mark = EpochFile::read(places.epoch_file);
  if (!mark && mark.error().code() == Code::kCorrupt)
    return mismatch(places, mark.error().message());
  if (!mark) return std::move(mark).error();
  ATOLL_TRY(bool is_there, is_database_there(places.database()));
  if (!is_there) return check_absent(places, *mark);
  if (*mark) ATOLL_TRY_VOID(check_stored(places, **mark));
  ATOLL_TRY(Database database, Database::open(places.database(), Durability::kProcess));
  return check_opened(places, database, *mark);
}

Result<void> join_pair(const PairedPlaces& places, int64_t now_ms) {
  uint64_t known = 0;
  // One that cannot be read is not needed any more.
  if (auto mark = EpochFile::read(places.epoch_file); mark && *mark) known = (*mark)->epoch.synced;
  ATOLL_TRY(Database database, Database::open(places.database(), Durability::kMachine));
  ATOLL_TRY_VOID(check_tables(database));
  ATOLL_TRY_VOID(migrate(database, catalog_migrations()));
  ATOLL_TRY_VOID(join_files(database, known, now_ms));
  ATOLL_TRY(EpochRow row, read_epoch(database));
  ATOLL_TRY(std::string boot, read_boot_id());
  ATOLL_TRY([[maybe_unused]] EpochFile file,
            EpochFile::create(places.epoch_file, {row.epoch, boot, 0}));
  return {};
}

}  // namespace atl::store
