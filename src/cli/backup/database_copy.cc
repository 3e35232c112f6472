#include "cli/backup/database_copy.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "base/ids.h"
#include "cli/run_as.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/epoch.h"
#include "store/migrations.h"

namespace atl::cli::backup {
namespace {

using store::Database;
using store::Durability;

constexpr size_t kIdentityLetters = 32;

template <typename Number>
bool read_number(const std::string& line, Number& number) {
  const char* end = line.data() + line.size();
  auto parsed = std::from_chars(line.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// Without an identity: an older version has none.
Result<store::Epoch> epoch_of(Database& copy) {
  ATOLL_TRY(bool has, store::has_epoch(copy));
  if (!has) return store::Epoch();
  ATOLL_TRY(store::EpochRow row, store::read_epoch(copy));
  return std::move(row.epoch);
}

// The schema version and the epoch, then an id a line.
Result<std::string> copy_and_look(const std::string& from, const std::string& to) {
  // Opening would make an empty one.
  if (access(from.c_str(), F_OK) != 0) return Error::system("find " + from);
  {
    ATOLL_TRY(Database original, Database::open(from, Durability::kProcess));
    ATOLL_TRY_VOID(original.copy_to(to));
  }
  ATOLL_TRY(Database copy, Database::open(to, Durability::kProcess));
  ATOLL_TRY_VOID(copy.check_integrity());
  ATOLL_TRY(uint32_t version, store::schema_version(copy));
  ATOLL_TRY(store::Epoch epoch, epoch_of(copy));
  std::string text =
      std::to_string(version) + "\n" + epoch.identity + "\n" + std::to_string(epoch.synced) + "\n";
  ATOLL_TRY(store::Query query, copy.query("SELECT sandbox_id FROM sandboxes WHERE state IN "
                                           "('creating', 'running') ORDER BY sandbox_id"));
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return text;
    text += query.text() + "\n";
    ATOLL_TRY_VOID(query.row_done());
  }
}

}  // namespace

Result<DatabaseCopy> copy_database(const std::string& from, const std::string& to,
                                   const Identity& daemon) {
  ATOLL_TRY(std::string text, run_as(daemon, [&] { return copy_and_look(from, to); }));
  DatabaseCopy copy;
  std::istringstream lines(text);
  std::string version, identity, synced;
  std::getline(lines, version);
  std::getline(lines, identity);
  std::getline(lines, synced);
  bool is_good = read_number(version, copy.schema_version) && copy.schema_version != 0 &&
                 read_number(synced, copy.epoch.synced) &&
                 (identity.empty() || identity.size() == kIdentityLetters) &&
                 identity.find_first_not_of("0123456789abcdef") == identity.npos;
  if (!is_good) return Error(Code::kCorrupt, from + " has no schema, or an impossible epoch");
  copy.epoch.identity = identity;
  for (std::string line; std::getline(lines, line);) {
    if (!SandboxId::parse(line)) return Error(Code::kCorrupt, from + " has an impossible id");
    copy.sandboxes.push_back(line);
  }
  return copy;
}

uint32_t known_schema_version() {
  return static_cast<uint32_t>(store::catalog_migrations().size());
}

}  // namespace atl::cli::backup
