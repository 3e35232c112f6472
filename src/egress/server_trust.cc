#include "egress/server_trust.h"

#include <unistd.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/log.h"
#include "egress/openssl.h"

namespace atl::egress {
namespace {

constexpr unsigned char kAlpn[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Result<void> add_authorities(SSL_CTX* context, const std::string& file) {
  if (file.empty()) return {};
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) {
    log_info("no authorities", {{"file", file}});
    return {};
  }
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1)
    return openssl_error("read the authorities in " + file);
  return {};
}

}  // namespace

Result<boost::asio::ssl::context> make_client_context(const std::string& host_authorities,
                                                      const std::string& more_authorities) {
  SSL_CTX* made = SSL_CTX_new(TLS_client_method());
  if (made == nullptr) return openssl_error("make a client");
  boost::asio::ssl::context context(made);  // owns it
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_set_alpn_protos(made, kAlpn, sizeof kAlpn) != 0)
    return openssl_error("offer HTTP/1.1");
  ATOLL_TRY_VOID(add_authorities(made, host_authorities));
  ATOLL_TRY_VOID(add_authorities(made, more_authorities));
  return context;
}

Result<void> expect_server(SSL* connection, const HostName& name) {
  SSL_set_hostflags(connection,
                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (SSL_set_tlsext_host_name(connection, name.string().c_str()) != 1 ||
      SSL_set1_host(connection, name.string().c_str()) != 1)
    return openssl_error("expect " + name.string());
  return {};
}

}  // namespace atl::egress
