#include "notary/signing_key.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <openssl/evp.h>

#include "base/file.h"
#include "base/ids.h"

namespace atl::notary {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kSignatureBytes = 64;

Error failed(const char* what) { return Error(Code::kSystem, std::string("OpenSSL: ") + what); }

std::string public_path(const std::string& path) {
  size_t dot = path.rfind(".key");
  return (dot == path.npos ? path : path.substr(0, dot)) + ".pub";
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

void SigningKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

Result<SigningKey> SigningKey::from_seed(std::string_view seed) {
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size()));
  if (!key) return failed("Ed25519 key");
  std::string half(kKeyBytes, '\0');
  size_t length = half.size();
  auto* bytes = reinterpret_cast<unsigned char*>(half.data());
  if (EVP_PKEY_get_raw_public_key(key.get(), bytes, &length) != 1 || length != kKeyBytes)
    return failed("public key");
  return SigningKey(std::move(key), std::move(half));
}

Result<SigningKey> SigningKey::open(const std::string& path) {
  ATOLL_TRY(Fd file, open_file(path, O_RDONLY | O_NOFOLLOW));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + path);
  if ((status.st_mode & 077) != 0)
    return Error(Code::kDenied, path + " can be read by others; chmod 600 it and make it anew");
  ATOLL_TRY(std::string seed, read_all(file.get(), kKeyBytes + 1));
  if (seed.size() != kKeyBytes) return Error(Code::kCorrupt, path + " is not a key");
  return from_seed(seed);
}

Result<SigningKey> SigningKey::open_or_create(const std::string& path) {
  auto key = open(path);
  if (!key && key.error().system_errno() == ENOENT) {
    std::array<unsigned char, kKeyBytes> seed;
    fill_random(seed);
    ATOLL_TRY_VOID(
        replace_file(path, {reinterpret_cast<const char*>(seed.data()), seed.size()}, 0600));
    key = open(path);
  }
  if (key)
    ATOLL_TRY_VOID(replace_file(public_path(path), to_base64(key->public_key()) + "\n", 0644));
  return key;
}

Result<std::string> SigningKey::sign(std::string_view bytes) const {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t length = signature.size();
  auto* out = reinterpret_cast<unsigned char*>(signature.data());
  bool signed_well =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(), out, &length, bytes_of(bytes), bytes.size()) == 1;
  if (!signed_well || length != kSignatureBytes) return failed("sign");
  return signature;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  auto* out = reinterpret_cast<unsigned char*>(text.data());
  int length = EVP_EncodeBlock(out, bytes_of(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

}  // namespace atl::notary
