// A blocking HTTP/1.1 client with keep-alive, for the command line, tests and benchmarks. One request at a
// time; reconnects by itself when the server closed an idle connection. Responses are bounded.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

class Client {
 public:
  // Nothing is dialled until the first request.
  static std::unique_ptr<Client> create(std::string host, unsigned short port,
                                        std::chrono::milliseconds timeout);
  virtual ~Client() = default;
  // `headers` without Host and Content-Length, which are filled in.
  virtual Result<Response> send(Method method, const std::string& target, const Headers& headers,
                                std::string body) = 0;
};

inline constexpr size_t kMaxResponseBytes = 256 * 1024 * 1024;

}  // namespace atl::http
