// The receipt of an isolate: what is enforced, in two columns. The outside one is read here, as
// root, from the kernel's own files about the birth probe (agent/probe.h) and from the groups and
// the layer that carry the limits; the inside one is what the probe sees. A launch whose columns
// differ, or show anything else than was asked for, fails.
//
// Kept as text in the isolate's record, R/isolates/<id>/receipt, where only root can write. Who
// asks for it gets it signed by atoll-notary, a program of its own because the warden links no
// cryptography.
#pragma once

#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

struct ReceiptSubject {
  const SandboxId& id;
  const Request& request;
  uid_t first_uid;
  int record;  // the isolate's directory in the inventory
  int probe;   // socket to the birth probe
};

// Compares, stores, and lets the probe go.
Result<void> write_receipt(const Host& host, const ReceiptSubject& subject);

// The signed document, ready for the client. kNotFound if there is no such isolate.
Result<std::string> sign_receipt(const Host& host, const SandboxId& id);

}  // namespace atl::warden
