#include "cli/backup/database_copy.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "base/ids.h"
#include "cli/run_as.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/migrations.h"

namespace atl::cli::backup {
namespace {

using store::Database;
using store::Durability;

// The schema version, then an id a line.
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
  std::string text = std::to_string(version) + "\n";
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
  for (std::string line; std::getline(lines, line);) {
    if (copy.schema_version != 0) {
      if (!SandboxId::parse(line)) return Error(Code::kCorrupt, from + " has an impossible id");
      copy.sandboxes.push_back(line);
      continue;
    }
    auto end = line.data() + line.size();
    auto parsed = std::from_chars(line.data(), end, copy.schema_version);
    if (parsed.ec != std::errc() || parsed.ptr != end || copy.schema_version == 0)
      return Error(Code::kCorrupt, from + " has no schema");
  }
  return copy;
}

uint32_t known_schema_version() {
  return static_cast<uint32_t>(store::catalog_migrations().size());
}

}  // namespace atl::cli::backup
