// Whom egress believes when it is itself the client of a TLS server: the host's store of
// authorities, and what the administrator added.
#pragma once

#include <string>

#include <boost/asio/ssl/context.hpp>

#include "base/result.h"
#include "egress/host_name.h"

namespace atl::egress {

inline constexpr char kHostAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";

// Read now and kept: where Landlock holds, they could not be read later. A file that is not there
// adds nobody; without any, no server is believed.
Result<boost::asio::ssl::context> make_client_context(const std::string& host_authorities,
                                                      const std::string& more_authorities);

// Before the handshake: asks for `name`, and believes nothing but a certificate for it.
Result<void> expect_server(SSL* connection, const HostName& name);

}  // namespace atl::egress
