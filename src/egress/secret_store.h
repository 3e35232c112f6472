// SecretStore: the secrets of all tenants, in memory and as files of egress's own directory, each
// encrypted (AES-256-GCM) with a key that is a file there too: whoever gets hold of a single file,
// of a log or of a backup of anything else has nothing. A file is bound to its tenant and name: it
// cannot stand for another.
//
// One thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "egress/secret.h"

namespace atl::egress {

class SecretStore {
 public:
  // The key is made by the first call. A file that cannot be read is logged and left out.
  // `directory` must stay open.
  static Result<SecretStore> open(int directory);

  // A new one, or another in the place of one, of which it is the next version; on disk when it
  // returns. kExhausted: too many.
  Result<void> put(uint64_t tenant, Secret secret, WallTime now);
  // kNotFound: there is none.
  Result<void> remove(uint64_t tenant, const std::string& name);
  // Null: there is none.
  const Secret* find(uint64_t tenant, const std::string& name) const;
  std::vector<const Secret*> list(uint64_t tenant) const;

 private:
  using Place = std::pair<uint64_t, std::string>;
  SecretStore(int directory, std::string key) : directory_(directory), key_(std::move(key)) {}
  Result<void> read_all_files();
  Result<Secret> read_one(const Place& place) const;

  int directory_;
  std::string key_;
  std::map<Place, Secret> secrets_;
};

}  // namespace atl::egress
