// CertificateAuthority: who vouches, inside one sandbox and nowhere else, for the names whose TLS
// is ended here. Its key is in a file of egress's own directory, so that what the sandbox was told
// to trust stays good when egress is started again; the sandbox gets the certificate alone.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "egress/host_name.h"
#include "egress/openssl.h"

namespace atl::egress {

class CertificateAuthority {
 public:
  using Context = boost::asio::ssl::context;

  // Made by the first call for this sandbox.
  static Result<CertificateAuthority> open(int directory, SandboxId id);
  static Result<void> remove(int directory, SandboxId id);

  // PEM.
  Result<std::string> certificate_text() const;
  // A server that is `name` and no other and speaks HTTP/1.1 alone. Shared with connections that
  // outlast its place in the cache.
  Result<std::shared_ptr<Context>> server_for(const HostName& name);

 private:
  struct Issued {
    std::shared_ptr<Context> context;
    SteadyTime until;
  };
  CertificateAuthority(Key key, Certificate certificate)
      : key_(std::move(key)), certificate_(std::move(certificate)) {}
  Result<Certificate> issue(const HostName& name);

  Key key_;
  Certificate certificate_;
  Key server_key_;  // of every server in this sandbox
  std::map<HostName, Issued> issued_;
};

}  // namespace atl::egress
