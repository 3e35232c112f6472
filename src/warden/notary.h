// Runs atoll-notary, the program that holds the key of receipts: S/receipt.key, root's alone, with
// S/receipt.pub beside it for everybody. It has no capability, no network and no descriptor but its
// standard streams.
#pragma once

#include <string>

#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Makes the key unless there is one.
Result<void> prepare_notary(const Host& host);

// The signed receipt over the facts in an open file.
Result<std::string> run_notary(const Host& host, int facts);

// The public key and the signature of a snapshot's manifest.
Result<std::string> sign_manifest(const Host& host, const Digest& digest);

}  // namespace atl::warden
