// The registry of ranges of user ids that are taken on this host: one directory of root's, with a
// file per range that says who has it.
//
// A file appears with its content in one step (linkat), and the registry is locked: shared to take
// and free, alone to look for stale entries, which could otherwise free a range that was just
// taken.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

class UidRegistry {
 public:
  enum class Lock : unsigned char { kShared, kAlone };
  static Result<UidRegistry> open(Lock lock);

  // The number of a range below `count` that nobody had; `note` hears of it before it is taken.
  // kExhausted: there is none.
  Result<uint32_t> take(uint32_t count, const std::string& owner,
                        const std::function<Result<void>(const std::string&)>& note);
  // Nothing to do if it is another's.
  Result<void> free(uint32_t number, const std::string& owner);
  // Those of owners that are no more.
  Result<void> free_stale(const std::function<bool(const std::string&)>& is_stale);

  // Once nobody on this host has a range; another Atoll that is about to take one finds a new
  // registry.
  static Result<void> remove_empty();
  // Of the name of an entry.
  static std::optional<uint32_t> parse(std::string_view name);

 private:
  explicit UidRegistry(Fd directory) : directory_(std::move(directory)) {}
  Result<void> remove(const std::string& name);
  Fd directory_;
};

}  // namespace atl::linux
