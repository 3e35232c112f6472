#include "store/catalog.h"

#include "store/migrations.h"

namespace atl::store {

Result<std::unique_ptr<Catalog>> Catalog::open(const std::string& path) {
  ATOLL_TRY(Database machine, Database::open(path, Durability::kMachine));
  ATOLL_TRY_VOID(migrate(machine, catalog_migrations()));
  ATOLL_TRY(int64_t first, begin_sequence(machine));
  ATOLL_TRY(Database process, Database::open(path, Durability::kProcess));
  return std::unique_ptr<Catalog>(new Catalog(std::move(process), std::move(machine), first));
}

}  // namespace atl::store
