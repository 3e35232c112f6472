// A blocking HTTP/1.1 client with keep-alive, for the command line, tests and benchmarks. One
// request at a time; reconnects by itself when the server closed an idle connection. Responses are
// bounded.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

// Takes the next bytes of a body, with the status and header fields they belong to.
using Sink = std::function<bool(const Response& head, std::string_view bytes)>;

struct Upload {
  // Fills the piece and says how much of it; 0 at the end.
  std::function<Result<size_t>(std::span<char> piece)> source;
  // Sent as Content-Length and kept; otherwise the body is chunked.
  std::optional<uint64_t> bytes;
};

class Client {
 public:
  // Nothing is dialled until the first request. `timeout` bounds a whole send(); for stream()
  // and upload() it bounds the time without progress.
  static std::unique_ptr<Client> create(std::string host, unsigned short port,
                                        std::chrono::milliseconds timeout);
  virtual ~Client() = default;
  // `headers` without Host and Content-Length, which are filled in. kUnavailable: no connection, or
  // lost before the answer. A request on an idle connection that turned out closed is sent again if
  // it may be done twice: not POST or PATCH, unless it has an Idempotency-Key.
  virtual Result<Response> send(Method method, const std::string& target, const Headers& headers,
                                std::string body) = 0;
  // Hands over the body of the answer, of any status, as it comes; false from `sink` ends the
  // connection. The body of the returned response is empty.
  virtual Result<Response> stream(Method method, const std::string& target, const Headers& headers,
                                  std::string body, Sink sink) = 0;
  // Sends a body while it is being made; never sent again.
  virtual Result<Response> upload(Method method, const std::string& target, const Headers& headers,
                                  Upload body) = 0;
};

inline constexpr size_t kMaxResponseBytes = 256 * 1024 * 1024;

}  // namespace atl::http
