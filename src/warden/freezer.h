// Freezer: stops all that runs in an isolate and lets it go on. The agent is in a group of its own
// and runs on. A note in the record says that an isolate shall stand still: groups that are found
// frozen without one were left so by a helper that died.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"
#include "warden/inventory.h"

namespace atl::warden {

// ENOENT: there is no such isolate.
Result<void> freeze_isolate(const Host& host, const SandboxId& id);
Result<void> thaw_isolate(const Host& host, const SandboxId& id);

// Nothing runs in an isolate, and nobody else works on it, for as long as this lives. Where there
// is none nothing runs anyway: its layer may have been kept.
class Stillness {
 public:
  static Result<Stillness> begin(const Host& host, const SandboxId& id);
  ~Stillness();
  Stillness(Stillness&&) = default;

 private:
  Stillness(std::string group, RecordLock record)
      : group_(std::move(group)), record_(std::move(record)) {}
  std::string group_;
  RecordLock record_;
};

// The same for a trial of some seconds, and without waiting for anything: what runs stops a moment
// after it was begun. Nothing if somebody works on the isolate, or has stopped it already.
class ShortStop {
 public:
  static std::optional<ShortStop> try_begin(const Host& host, const SandboxId& id);
  ~ShortStop();
  ShortStop(ShortStop&&) = default;

 private:
  ShortStop(std::string group, RecordLock record)
      : group_(std::move(group)), record_(std::move(record)) {}
  std::string group_;
  RecordLock record_;
};

// At start, and when a helper died that had stopped an isolate.
Result<void> thaw_without_note(const Host& host);

}  // namespace atl::warden
