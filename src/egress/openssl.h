// What OpenSSL gives, owned.
#pragma once

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/result.h"

namespace atl::egress {

struct FreeOpenssl {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_CIPHER_CTX* cipher) const { EVP_CIPHER_CTX_free(cipher); }
};

using Key = std::unique_ptr<EVP_PKEY, FreeOpenssl>;
using Certificate = std::unique_ptr<X509, FreeOpenssl>;
using Bio = std::unique_ptr<BIO, FreeOpenssl>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeOpenssl>;

// The last failure of OpenSSL on this thread, which is then forgotten.
inline Error openssl_error(const std::string& what) {
  char text[256] = {};
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return Error(Code::kSystem, what + ": " + text);
}

}  // namespace atl::egress
