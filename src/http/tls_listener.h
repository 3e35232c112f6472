// TLS in front of a Server: accepts, ends TLS with one certificate and hands the plain bytes of
// each connection to the server, over a pair of sockets. So all that the server does for a plain
// connection (limits, time, peers that leave) holds for these too.
//
// Belongs to the io_context thread. The files are read once, when it is made.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "http/server.h"

namespace atl::http {

struct TlsFiles {
  std::string certificate;  // PEM: the server's own first, then those that lead to a known one
  std::string key;          // PEM, without a passphrase
};

struct TlsAddress {
  std::string address;      // a literal
  unsigned short port = 0;  // 0 picks a free one
};

// Refuses files that cannot be read, are of no use or do not belong together.
Result<void> check_tls_files(const TlsFiles& files);

class TlsListener {
 public:
  // Refuses what check_tls_files() refuses. `server` outlives it.
  static Result<std::unique_ptr<TlsListener>> listen(boost::asio::io_context& context,
                                                     const TlsAddress& where, const TlsFiles& files,
                                                     Server& server);
  virtual ~TlsListener() = default;
  virtual unsigned short port() const = 0;
  // Accepts until stopped. Connections end with those of the server.
  virtual Task<void> run() = 0;
  virtual void stop() = 0;
};

}  // namespace atl::http
