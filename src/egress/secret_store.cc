#include "egress/secret_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "egress/sealed_file.h"
#include "egress/secret_use.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr char kKeyFile[] = "secrets.key";
constexpr std::string_view kSuffix = ".secret";

std::string file_name(uint64_t tenant, const std::string& name) {
  return std::to_string(tenant) + "-" + name + std::string(kSuffix);
}

std::string label_of(uint64_t tenant, const std::string& name) {
  return "atoll secret " + std::to_string(tenant) + " " + name;
}

std::optional<std::pair<uint64_t, std::string>> parse_file_name(std::string_view file) {
  size_t dash = file.find('-');
  if (dash == file.npos || !file.ends_with(kSuffix)) return std::nullopt;
  uint64_t tenant = 0;
  auto [end, error] = std::from_chars(file.data(), file.data() + dash, tenant);
  std::string name(file.substr(dash + 1, file.size() - kSuffix.size() - dash - 1));
  if (error != std::errc() || end != file.data() + dash || !is_kept_secret_name(name))
    return std::nullopt;
  return std::pair(tenant, std::move(name));
}

Result<std::string> open_key(int directory) {
  auto stored = read_file_at(directory, kKeyFile);
  if (stored && stored->size() == kSealKeyBytes) return stored;
  if (stored) return Error(Code::kCorrupt, "secrets.key has not 32 bytes");
  if (stored.error().system_errno() != ENOENT) return std::move(stored).error();
  std::array<unsigned char, kSealKeyBytes> bytes;
  fill_random(bytes);
  std::string key(bytes.begin(), bytes.end());
  ATOLL_TRY_VOID(write_private_file(directory, kKeyFile, key));
  return key;
}

}  // namespace

Result<SecretStore> SecretStore::open(int directory) {
  ATOLL_TRY(std::string key, open_key(directory));
  SecretStore store(directory, std::move(key));
  ATOLL_TRY_VOID(store.read_all_files());
  return store;
}

Result<void> SecretStore::read_all_files() {
  ATOLL_TRY(Fd opened, open_at(directory_, ".", O_RDONLY | O_DIRECTORY));
  DIR* entries = fdopendir(opened.get());
  if (entries == nullptr) return Error::system("list the secrets");
  (void)opened.release();  // closedir() closes it
  std::vector<Place> places;
  while (const dirent* entry = readdir(entries))
    if (auto place = parse_file_name(entry->d_name)) places.push_back(std::move(*place));
  closedir(entries);
  for (const Place& place : places) {
    auto secret = read_one(place);
    if (secret)
      secrets_.emplace(place, std::move(*secret));
    else
      log_error("a secret cannot be read", {{"name", place.second}, secret.error()});
  }
  return {};
}

Result<Secret> SecretStore::read_one(const Place& place) const {
  const auto& [tenant, name] = place;
  ATOLL_TRY(std::string sealed, read_file_at(directory_, file_name(tenant, name)));
  ATOLL_TRY(std::string text, unseal(key_, label_of(tenant, name), sealed));
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kCorrupt, "a secret is no object");
  return parse_stored_secret(name, std::move(value.get_object()));
}

Result<void> SecretStore::put(uint64_t tenant, Secret secret, WallTime now) {
  const Secret* known = find(tenant, secret.name);
  if (known == nullptr && list(tenant).size() >= kMaxSecretsOfTenant)
    return Error(Code::kExhausted, "there are 64 secrets").with_reason("too_many_secrets");
  using std::chrono::milliseconds;
  int64_t now_ms = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count();
  secret.history = {.version = 1, .created_at_ms = now_ms, .updated_at_ms = now_ms};
  if (known != nullptr) {
    secret.history.version = known->history.version + 1;
    secret.history.created_at_ms = known->history.created_at_ms;
  }
  std::string name = secret.name;
  std::string text = json::serialize(stored_secret(secret));
  ATOLL_TRY(std::string sealed, seal(key_, label_of(tenant, name), text));
  ATOLL_TRY_VOID(write_private_file(directory_, file_name(tenant, name), sealed));
  secrets_.insert_or_assign(Place(tenant, std::move(name)), std::move(secret));
  return {};
}

Result<void> SecretStore::remove(uint64_t tenant, const std::string& name) {
  if (secrets_.erase(Place(tenant, name)) == 0)
    return Error(Code::kNotFound, "there is no secret " + name);
  if (unlinkat(directory_, file_name(tenant, name).c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove a secret");
  if (fsync(directory_) != 0) return Error::system("sync the directory of secrets");
  return {};
}

const Secret* SecretStore::find(uint64_t tenant, const std::string& name) const {
  auto found = secrets_.find(Place(tenant, name));
  return found == secrets_.end() ? nullptr : &found->second;
}

std::vector<const Secret*> SecretStore::list(uint64_t tenant) const {
  std::vector<const Secret*> all;
  auto last = secrets_.upper_bound(Place(tenant + 1, ""));
  for (auto at = secrets_.lower_bound(Place(tenant, "")); at != last; ++at)
    if (at->first.first == tenant) all.push_back(&at->second);
  return all;
}

}  // namespace atl::egress
