// What becomes, at a start, of files and isolates that no row names: what a crash left half-done
// is removed, because the database has proved that it is the one that they belong to
// (store/pairing.h). What an operator had it adopt is set aside. Beside a database that is new
// there can be none.
#pragma once

#include <set>
#include <string_view>

#include "isolate/driver.h"
#include "sandbox/exec_table.h"
#include "store/lost_found.h"

namespace atl::sandbox {

// kConflict with reason database_mismatch: nothing may become of it. `kind` is for the message.
Result<store::Unlisted> fate_of_unlisted(const Ledger& ledger, std::string_view kind,
                                         std::string_view name);

// Ends what no row names. Logs it.
Task<Result<void>> clear_unlisted(Services& services, isolate::Found found);
// The output of sandboxes that have no row.
Result<void> clear_unlisted_outputs(Services& services, const std::set<SandboxId>& with_row);

}  // namespace atl::sandbox
