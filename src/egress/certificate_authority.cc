#include "egress/certificate_authority.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/file.h"
#include "egress/sealed_file.h"

namespace atl::egress {
namespace {

constexpr long kSecondsPerDay = 24 * 3600;
constexpr long kAuthorityDays = 3 * 365;
constexpr long kServerDays = 30;
constexpr std::chrono::hours kKeptHours{24};  // much less than kServerDays
constexpr size_t kMaxIssued = 256;
constexpr size_t kSerialBytes = 16;
constexpr char kAlpn[] = "\x08http/1.1";

std::string file_name(const SandboxId& id) { return id.string() + ".ca"; }

Result<Key> make_key() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return openssl_error("make a key");
  return key;
}

// `issuer` may be the certificate itself.
bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) return false;
  bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool set_serial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes;
  fill_random(bytes);
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, full length
  BIGNUM* number = BN_bin2bn(bytes.data(), bytes.size(), nullptr);
  if (number == nullptr) return false;
  bool set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool set_name(X509* certificate, const std::string& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, bytes,
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

// A day back, because clocks inside and outside may differ.
Result<Certificate> blank(EVP_PKEY* key, long days) {
  Certificate made(X509_new());
  bool ok = made && X509_set_version(made.get(), X509_VERSION_3) == 1 && set_serial(made.get()) &&
            X509_gmtime_adj(X509_getm_notBefore(made.get()), -kSecondsPerDay) != nullptr &&
            X509_gmtime_adj(X509_getm_notAfter(made.get()), days * kSecondsPerDay) != nullptr &&
            X509_set_pubkey(made.get(), key) == 1;
  if (!ok) return openssl_error("make a certificate");
  return made;
}

Result<Certificate> make_authority(EVP_PKEY* key, const SandboxId& id) {
  ATOLL_TRY(Certificate made, blank(key, kAuthorityDays));
  X509* self = made.get();
  bool ok = set_name(self, "Atoll sandbox " + id.string()) &&
            X509_set_issuer_name(self, X509_get_subject_name(self)) == 1 &&
            add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
            add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign") &&
            add_extension(self, self, NID_subject_key_identifier, "hash") &&
            X509_sign(self, key, EVP_sha256()) > 0;
  if (!ok) return openssl_error("make an authority");
  return made;
}

Result<std::string> text_of(BIO* bio) {
  char* bytes = nullptr;
  long size = BIO_get_mem_data(bio, &bytes);
  if (size <= 0) return openssl_error("write PEM");
  return std::string(bytes, static_cast<size_t>(size));
}

// A client that names no protocol speaks HTTP/1.1 by custom; one that names only others is ended.
void choose_protocol(SSL_CTX* server) {
  auto choose = [](SSL*, auto chosen, auto chosen_bytes, auto offered, auto offered_bytes, void*) {
    const auto* ours = reinterpret_cast<const unsigned char*>(kAlpn);
    unsigned char* found = nullptr;
    int result =
        SSL_select_next_proto(&found, chosen_bytes, ours, sizeof kAlpn - 1, offered, offered_bytes);
    *chosen = found;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  };
  SSL_CTX_set_alpn_select_cb(server, choose, nullptr);
}

}  // namespace

Result<CertificateAuthority> CertificateAuthority::open(int directory, SandboxId id) {
  auto stored = read_file_at(directory, file_name(id));
  if (!stored && stored.error().system_errno() != ENOENT) return std::move(stored).error();
  if (stored) {
    Bio bio(BIO_new_mem_buf(stored->data(), static_cast<int>(stored->size())));
    Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
    Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!key || !certificate) return openssl_error("read the authority of " + id.string());
    return CertificateAuthority(std::move(key), std::move(certificate));
  }
  ATOLL_TRY(Key key, make_key());
  ATOLL_TRY(Certificate certificate, make_authority(key.get(), id));
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      PEM_write_bio_X509(bio.get(), certificate.get()) != 1)
    return openssl_error("write the authority of " + id.string());
  ATOLL_TRY(std::string text, text_of(bio.get()));
  ATOLL_TRY_VOID(write_private_file(directory, file_name(id), text));
  return CertificateAuthority(std::move(key), std::move(certificate));
}

Result<void> CertificateAuthority::remove(int directory, SandboxId id) {
  if (unlinkat(directory, file_name(id).c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove an authority");
  return {};
}

Result<std::string> CertificateAuthority::certificate_text() const {
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate_.get()) != 1)
    return openssl_error("write a certificate");
  return text_of(bio.get());
}

Result<Certificate> CertificateAuthority::issue(const HostName& name) {
  if (!server_key_) {
    ATOLL_TRY(server_key_, make_key());
  }
  ATOLL_TRY(Certificate made, blank(server_key_.get(), kServerDays));
  X509* self = made.get();
  X509* issuer = certificate_.get();
  // The subject is empty, because it may hold 64 bytes only; the name is critical then.
  bool ok = X509_set_issuer_name(self, X509_get_subject_name(issuer)) == 1 &&
            add_extension(self, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
            add_extension(self, issuer, NID_key_usage, "critical,digitalSignature") &&
            add_extension(self, issuer, NID_ext_key_usage, "serverAuth") &&
            add_extension(self, issuer, NID_subject_key_identifier, "hash") &&
            add_extension(self, issuer, NID_authority_key_identifier, "keyid") &&
            add_extension(self, issuer, NID_subject_alt_name, "critical,DNS:" + name.string()) &&
            X509_sign(self, key_.get(), EVP_sha256()) > 0;
  if (!ok) return openssl_error("issue a certificate for " + name.string());
  return made;
}

Result<std::shared_ptr<CertificateAuthority::Context>> CertificateAuthority::server_for(
    const HostName& name) {
  SteadyTime now = std::chrono::steady_clock::now();
  auto found = issued_.find(name);
  if (found != issued_.end() && found->second.until > now) return found->second.context;
  ATOLL_TRY(Certificate certificate, issue(name));
  SSL_CTX* made = SSL_CTX_new(TLS_server_method());
  if (made == nullptr) return openssl_error("make a server");
  auto context = std::make_shared<Context>(made);  // owns it
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_ctrl(made, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
  choose_protocol(made);
  if (SSL_CTX_use_certificate(made, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(made, server_key_.get()) != 1)
    return openssl_error("give a server its certificate");
  if (issued_.size() >= kMaxIssued) issued_.clear();
  issued_.insert_or_assign(name, Issued{context, now + kKeptHours});
  return context;
}

}  // namespace atl::egress
