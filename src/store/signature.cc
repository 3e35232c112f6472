#include "store/signature.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include <openssl/evp.h>

#include "base/file.h"

namespace atl::store {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// 32 bytes are 44 letters, the last of which is "=".
Result<std::string> decode_key(const std::string& text) {
  constexpr size_t kLetters = 44;
  std::string bytes(kLetters, '\0');
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  bool good = text.size() == kLetters && text.ends_with('=') &&
              EVP_DecodeBlock(out, bytes_of(text), kLetters) == kPublicKeyBytes + 1;
  if (!good) return Error(Code::kInvalid, "\"" + text + "\" is not a public key in base 64");
  bytes.resize(kPublicKeyBytes);
  return bytes;
}

Result<void> add_keys(const std::string& text, PublicKeys& keys) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    std::erase_if(line, [](char letter) { return letter == ' ' || letter == '\t'; });
    if (line.empty()) continue;
    ATOLL_TRY(std::string key, decode_key(line));
    keys.push_back(std::move(key));
  }
  return {};
}

}  // namespace

bool is_signed_by(std::string_view key, std::string_view bytes, std::string_view signature) {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> loaded(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(key), key.size()),
      EVP_PKEY_free);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  return loaded && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, loaded.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(bytes),
                          bytes.size()) == 1;
}

Result<PublicKeys> read_trusted_keys(const std::string& state_directory) {
  PublicKeys keys;
  ATOLL_TRY(std::string own, read_file(state_directory + "/receipt.pub"));
  ATOLL_TRY_VOID(add_keys(own, keys));
  std::string path = state_directory + "/trusted-keys";
  auto others = read_file(path);
  if (!others && others.error().code() == Code::kNotFound) return keys;
  if (!others) return std::move(others).error();
  auto added = add_keys(*others, keys);
  if (!added) return std::move(added).error().with_context(path);
  return keys;
}

}  // namespace atl::store
