#include "store/sequence.h"

namespace atl::store {

Result<int64_t> begin_sequence(Database& database) {
  ATOLL_TRY(Query query,
            database.query("UPDATE sequence SET starts = starts + 1 RETURNING starts"));
  ATOLL_TRY(bool found, query.next());
  if (!found)
    return Error(Code::kCorrupt, "database " + database.path() + ": the sequence has no row");
  int64_t starts = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  ATOLL_TRY_VOID(query.run());
  return starts * kDrawsOfOneStart;
}

}  // namespace atl::store
