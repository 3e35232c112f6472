#include "egress/sealed_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/ids.h"
#include "egress/openssl.h"

namespace atl::egress {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
int size_of(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Result<std::string> seal(std::string_view key, std::string_view label, std::string_view plain) {
  ATOLL_CHECK(key.size() == kSealKeyBytes);
  std::array<unsigned char, kNonceBytes> nonce;
  fill_random(nonce);
  std::string sealed(plain.size(), '\0'), tag(kTagBytes, '\0');
  Cipher cipher(EVP_CIPHER_CTX_new());
  int count = 0;
  bool ok =
      cipher &&
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key), nonce.data()) &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &count, bytes_of(label), size_of(label)) &&
      EVP_EncryptUpdate(cipher.get(), bytes_of(sealed), &count, bytes_of(plain), size_of(plain)) &&
      EVP_EncryptFinal_ex(cipher.get(), bytes_of(sealed) + count, &count) &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data());
  if (!ok) return openssl_error("encrypt");
  return std::string(nonce.begin(), nonce.end()) + sealed + tag;
}

Result<std::string> unseal(std::string_view key, std::string_view label, std::string_view sealed) {
  if (key.size() != kSealKeyBytes || sealed.size() < kNonceBytes + kTagBytes)
    return Error(Code::kCorrupt, "too short to be encrypted");
  std::string_view nonce = sealed.substr(0, kNonceBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  std::string_view text = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string plain(text.size(), '\0');
  Cipher cipher(EVP_CIPHER_CTX_new());
  int count = 0, last = 0;
  bool ok =
      cipher &&
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_of(key),
                         bytes_of(nonce)) &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &count, bytes_of(label), size_of(label)) &&
      EVP_DecryptUpdate(cipher.get(), bytes_of(plain), &count, bytes_of(text), size_of(text)) &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) &&
      EVP_DecryptFinal_ex(cipher.get(), bytes_of(plain) + count, &last);
  ERR_clear_error();
  if (!ok) return Error(Code::kCorrupt, "not what was encrypted here");
  return plain;
}

Result<void> write_private_file(int directory, const std::string& name, std::string_view bytes) {
  std::string fresh = name + ".new";
  int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
  ATOLL_TRY(Fd file, open_at(directory, fresh, flags, 0600));
  ATOLL_TRY_VOID(write_all(file.get(), bytes));
  if (fdatasync(file.get()) != 0) return Error::system("sync " + fresh);
  if (renameat(directory, fresh.c_str(), directory, name.c_str()) != 0)
    return Error::system("rename " + fresh);
  if (fsync(directory) != 0) return Error::system("sync the directory of " + name);
  return {};
}

}  // namespace atl::egress
