#include "store/catalog.h"

#include "store/migrations.h"
#include "store/pairing.h"

namespace atl::store {

Result<std::unique_ptr<Catalog>> Catalog::open(const std::string& path) {
  ATOLL_TRY(Database machine, Database::open(path, Durability::kMachine));
  ATOLL_TRY_VOID(migrate(machine, catalog_migrations()));
  ATOLL_TRY_VOID(count_synced_changes(machine));
  ATOLL_TRY(int64_t first, begin_sequence(machine));
  ATOLL_TRY(Database process, Database::open(path, Durability::kProcess));
  return std::unique_ptr<Catalog>(new Catalog(std::move(process), std::move(machine), first));
}

Result<std::unique_ptr<Catalog>> Catalog::open(const PairedPlaces& places) {
  ATOLL_TRY_VOID(check_pair(places));
  ATOLL_TRY(std::unique_ptr<Catalog> catalog, open(places.database()));
  ATOLL_TRY_VOID(catalog->epoch_.begin(places.epoch_file));
  return catalog;
}

}  // namespace atl::store
