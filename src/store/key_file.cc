#include "store/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/file.h"
#include "base/ids.h"
#include "store/sha256.h"

namespace atl::store {
namespace {

constexpr std::string_view kKeyPrefix = "atoll_";
constexpr std::string_view kE2bKeyPrefix = "e2b_";
constexpr size_t kE2bKeyBytes = 20;
constexpr size_t kKeyRandomCharacters = 40;
constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr unsigned kPrivateMode = 0600;

int64_t now_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Error refusal(const std::string& path, Code code, const std::string& reason) {
  return Error(code, "key file " + path + ": " + reason);
}

// Nothing, if there is no file.
Result<std::optional<std::string>> read_key(const std::string& path) {
  // Non-blocking, so that a FIFO in its place is refused and not waited for.
  auto fd = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && fd.error().system_errno() == ENOENT) return std::optional<std::string>();
  if (!fd && fd.error().system_errno() == ELOOP)
    return refusal(path, Code::kDenied, "is a symbolic link; put the file itself there");
  if (!fd) return std::move(fd).error().with_context("key file");

  struct stat status;
  if (fstat(fd->get(), &status) != 0) return Error::system("stat key file " + path);
  if (!S_ISREG(status.st_mode))
    return refusal(path, Code::kDenied, "is not a regular file; remove it and restart atolld");
  if (status.st_uid != geteuid())
    return refusal(path, Code::kDenied,
                   "belongs to uid " + std::to_string(status.st_uid) + " and not to uid " +
                       std::to_string(geteuid()) +
                       " of atolld; chown it, or remove it and restart");
  if ((status.st_mode & 07777) != kPrivateMode)
    return refusal(path, Code::kDenied,
                   "others may have read it; run chmod 600 on it if you trust them, else remove it "
                   "and restart atolld for a new key");

  auto text = read_all(fd->get(), 4096);
  if (!text) return std::move(text).error().with_context("key file " + path);
  if (text->ends_with('\n')) text->pop_back();
  if (!is_key(*text))
    return refusal(path, Code::kCorrupt,
                   "does not hold a key; remove it and restart atolld for a new key");
  return std::optional(std::move(*text));
}

Result<void> insert_local_key(Catalog& catalog, const std::string& path, const std::string& key) {
  KeyRow row{.id = draw_key_id(),
             .tenant = kLocalTenant,
             .name = std::string(kLocalKeyName),
             .hash = sha256(key).bytes(),
             .created_at_ms = now_ms(),
             .sequence = catalog.sequence().draw()};
  auto inserted = catalog.keys().replace(row);
  if (inserted) return {};
  if (inserted.error().code() != Code::kConflict) return inserted;
  return refusal(path, Code::kDenied,
                 "its key was revoked; remove the file and restart atolld for a new key");
}

}  // namespace

std::string draw_key() { return std::string(kKeyPrefix) + random_text(kKeyRandomCharacters); }

std::string draw_e2b_key() {
  std::array<unsigned char, kE2bKeyBytes> bytes;
  fill_random(bytes);
  return std::string(kE2bKeyPrefix) + to_hex(bytes);
}

std::string draw_key_id() { return "k" + random_text(15); }

bool is_key(std::string_view text) {
  return text.size() == kKeyPrefix.size() + kKeyRandomCharacters && text.starts_with(kKeyPrefix) &&
         text.substr(kKeyPrefix.size()).find_first_not_of(kBase32) == text.npos;
}

Result<std::string> ensure_local_key(Catalog& catalog, const std::string& path) {
  ATOLL_TRY(std::optional<std::string> present, read_key(path));
  if (present) {
    ATOLL_TRY(auto row, catalog.keys().find_by_hash(sha256(*present).bytes()));
    if (row && row->tenant != kLocalTenant)
      return refusal(path, Code::kDenied,
                     "holds a key of another tenant; remove it and restart atolld for a new key");
    if (!row) ATOLL_TRY_VOID(insert_local_key(catalog, path, *present));
    return std::move(*present);
  }

  std::string key = draw_key();
  ATOLL_TRY_VOID(replace_file(path, key + "\n", kPrivateMode));
  ATOLL_TRY_VOID(insert_local_key(catalog, path, key));
  return key;
}

}  // namespace atl::store
