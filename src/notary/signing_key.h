// The Ed25519 key that signs receipts, in a file that only its owner can read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_pkey_st;

namespace atl::notary {

class SigningKey {
 public:
  // Refuses a file that others may read or write.
  static Result<SigningKey> open(const std::string& path);
  // Opens it or makes it, with the public half beside it (".pub" instead of ".key", for everybody
  // to read).
  static Result<SigningKey> open_or_create(const std::string& path);

  Result<std::string> sign(std::string_view bytes) const;
  // 32 bytes.
  const std::string& public_key() const { return public_key_; }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  using Key = std::unique_ptr<evp_pkey_st, Free>;
  SigningKey(Key key, std::string public_key)
      : key_(std::move(key)), public_key_(std::move(public_key)) {}
  static Result<SigningKey> from_seed(std::string_view seed);

  Key key_;
  std::string public_key_;
};

std::string to_base64(std::string_view bytes);

}  // namespace atl::notary
