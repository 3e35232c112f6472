#include "store/sha256.h"

#include <unistd.h>

#include <array>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/file.h"

namespace atl::store {
namespace {

constexpr size_t kReadBytes = 256 * 1024;

}  // namespace

// OpenSSL fails here only without memory or with a broken configuration; a wrong digest must never
// be taken for a right one.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ATOLL_CHECK(context_ != nullptr);
  ATOLL_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::Sha256(const Sha256& other) : context_(EVP_MD_CTX_new()) {
  ATOLL_CHECK(context_ && EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()) == 1);
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void Sha256::update(std::string_view bytes) {
  ATOLL_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  std::array<unsigned char, Digest::kBytes> bytes;
  unsigned length = 0;
  ATOLL_CHECK(EVP_DigestFinal_ex(context_.get(), bytes.data(), &length) == 1);
  ATOLL_CHECK(length == bytes.size());
  return Digest::from_bytes(bytes);
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<Digest> sha256_of_fd(int fd) {
  Sha256 hash;
  std::vector<char> buffer(kReadBytes);
  while (true) {
    ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read");
    if (count == 0) return hash.finish();
    hash.update({buffer.data(), static_cast<size_t>(count)});
  }
}

Result<Digest> sha256_of_file(const std::string& path) {
  ATOLL_TRY(Fd fd, open_file(path, O_RDONLY));
  auto digest = sha256_of_fd(fd.get());
  if (!digest) return std::move(digest).error().with_context("hash " + path);
  return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, Digest::kBytes> bytes;
  unsigned length = 0;
  const auto* given = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), given,
                                   text.size(), bytes.data(), &length);
  ATOLL_CHECK(made != nullptr && length == bytes.size());
  return Digest::from_bytes(bytes);
}

bool constant_time_equal(std::span<const unsigned char> a, std::span<const unsigned char> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace atl::store
