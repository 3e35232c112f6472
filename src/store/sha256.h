// SHA-256, for keys and images.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

struct evp_md_ctx_st;

namespace atl::store {

// Over bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  // A copy goes on by itself from what was added so far.
  Sha256(const Sha256& other);
  Sha256(Sha256&&) = default;
  Sha256& operator=(Sha256&&) = default;
  void update(std::string_view bytes);
  // Once; nothing can be added afterwards.
  Digest finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Digest sha256(std::string_view bytes);
// From the current position to the end.
Result<Digest> sha256_of_fd(int fd);
Result<Digest> sha256_of_file(const std::string& path);

// The code that proves that `text` comes from who has the key.
Digest hmac_sha256(std::string_view key, std::string_view text);

// Takes as long for equal as for unequal bytes of the same length.
bool constant_time_equal(std::span<const unsigned char> a, std::span<const unsigned char> b);

}  // namespace atl::store
