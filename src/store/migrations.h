// The schema as an ordered list of scripts. Version n means that the first n were applied; each is
// one transaction with the new version number, so an interrupted one leaves the version before it.
// Scripts that were released are never edited, only followed by others.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "store/database.h"

namespace atl::store {

// Brings the database to the last version. Refuses a newer one, and a file that holds other tables.
Result<void> migrate(Database& database, std::span<const Sql> migrations);

// Refuses what migrate() would, and changes nothing.
Result<void> check_migratable(Database& database, std::span<const Sql> migrations);

// 0: empty.
Result<uint32_t> schema_version(Database& database);

}  // namespace atl::store
