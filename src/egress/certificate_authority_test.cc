#include "egress/certificate_authority.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/file.h"

namespace atl::egress {
namespace {

HostName name(std::string_view text) { return *HostName::parse(text); }

Certificate parse(const std::string& pem) {
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

struct FreeStore {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
};

// What a client that trusts `authority` alone says of a server's certificate.
bool believes(X509* authority, X509* server, const char* host) {
  std::unique_ptr<X509_STORE, FreeStore> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), authority);
  std::unique_ptr<X509_STORE_CTX, FreeStore> check(X509_STORE_CTX_new());
  X509_STORE_CTX_init(check.get(), store.get(), server, nullptr);
  X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set1_host(wanted, host, 0);
  return X509_verify_cert(check.get()) == 1;
}

struct Bed {
  Bed() {
    char pattern[] = "/tmp/atoll-authority-XXXXXX";
    path = mkdtemp(pattern);
    fd = *open_file(path, O_RDONLY | O_DIRECTORY);
  }
  ~Bed() { std::filesystem::remove_all(path); }
  std::string path;
  Fd fd;
  SandboxId id = SandboxId::draw();
  CertificateAuthority open() { return CertificateAuthority::open(fd.get(), id).value(); }
};

TEST(CertificateAuthority, VouchesForExactlyTheName) {
  Bed bed;
  CertificateAuthority authority = bed.open();
  Certificate root = parse(authority.certificate_text().value());
  auto server = authority.server_for(name("api.example.com"));
  ASSERT_TRUE(server.ok());
  X509* shown = SSL_CTX_get0_certificate((*server)->native_handle());
  EXPECT_TRUE(believes(root.get(), shown, "api.example.com"));
  EXPECT_FALSE(believes(root.get(), shown, "other.example.com"));
  EXPECT_FALSE(believes(root.get(), shown, "a.api.example.com"));
}

TEST(CertificateAuthority, NamesOfAnyLengthAreVouchedFor) {
  Bed bed;
  CertificateAuthority authority = bed.open();
  Certificate root = parse(authority.certificate_text().value());
  std::string label(60, 'a');
  std::string host = label + "." + label + "." + label + ".example";
  auto server = authority.server_for(name(host));
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE(
      believes(root.get(), SSL_CTX_get0_certificate((*server)->native_handle()), host.c_str()));
}

TEST(CertificateAuthority, IsOfOneSandboxOnly) {
  Bed bed, other;
  Certificate root = parse(other.open().certificate_text().value());
  CertificateAuthority authority = bed.open();
  auto server = authority.server_for(name("api.example.com"));
  EXPECT_FALSE(believes(root.get(), SSL_CTX_get0_certificate((*server)->native_handle()),
                        "api.example.com"));
}

TEST(CertificateAuthority, OutlivesTheProcessInAFileOfItsOwn) {
  Bed bed;
  std::string first = bed.open().certificate_text().value();
  EXPECT_EQ(bed.open().certificate_text().value(), first);
  EXPECT_EQ(first.find("PRIVATE"), first.npos);
  struct stat status;
  ASSERT_EQ(fstatat(bed.fd.get(), (bed.id.string() + ".ca").c_str(), &status, 0), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_TRUE(CertificateAuthority::remove(bed.fd.get(), bed.id).ok());
  EXPECT_NE(bed.open().certificate_text().value(), first);
}

TEST(CertificateAuthority, AFileThatIsNoneIsAnError) {
  Bed bed;
  ASSERT_TRUE(replace_file(bed.path + "/" + bed.id.string() + ".ca", "x", 0600).ok());
  EXPECT_FALSE(CertificateAuthority::open(bed.fd.get(), bed.id).ok());
}

}  // namespace
}  // namespace atl::egress
