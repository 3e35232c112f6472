// Api: the HTTP API v1 as the command line uses it. An error that the server explains comes back
// with its code, message and remedy, so that it can be shown as it is.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "cli/limits.h"
#include "cli/server.h"
#include "http/client.h"
#include "http/event_parser.h"
#include "http/web_socket_client.h"

namespace atl::cli {

class Api {
 public:
  explicit Api(Server server) : server_(std::move(server)) {}

  struct Call {
    http::Method method = http::Method::kGet;
    std::string target;
    boost::json::object body = {};
    // For an answer that streams: without a byte.
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
    http::Headers headers = {};
  };
  // An empty object when the answer has no body.
  Result<boost::json::object> call(const Call& call);
  // The body as it comes, of a success only; false leaves.
  Result<http::Response> stream(const Call& call, std::function<bool(std::string_view)> on_bytes);
  // The events as they come; false leaves.
  Result<void> events(const Call& call, std::function<bool(const http::ReceivedEvent&)> on_event);
  Result<boost::json::object> upload(const Call& call, http::Upload body);
  Result<std::unique_ptr<http::WebSocketClient>> open_web_socket(const std::string& target);
  // Every page of the rows that `target` lists under `name`.
  Result<boost::json::array> list(const std::string& target, const std::string& name);

  Result<boost::json::object> create_sandbox(const SandboxOptions& options);
  // With every field of the request as it stands.
  Result<boost::json::object> create_sandbox(boost::json::object request);
  Result<boost::json::object> show_sandbox(const std::string& id);
  Result<void> remove_sandbox(const std::string& id);

  // With every field of the request as it stands; the answer may take as long as its timeout_ms.
  Result<boost::json::object> start_exec(const std::string& sandbox, boost::json::object request);
  Result<boost::json::object> show_exec(const std::string& sandbox, const std::string& exec);

 private:
  Result<http::Response> send(const Call& call);
  http::Headers headers_of(const Call& call) const;
  std::string named() const;

  Server server_;
};

struct CommandLine;
// The server that the user means; nothing is sent yet.
Result<Api> connect(const CommandLine& line);

// The path of a sandbox, by its id or name: nothing else may stand in a path.
Result<std::string> sandbox_target(const std::string& id);
Result<std::string> exec_target(const std::string& sandbox, const std::string& exec);
// Everything but letters and digits, and what `kept` has.
std::string percent_encode(std::string_view text, std::string_view kept = "");

// The body of a create or of an exec: only what was said.
boost::json::object create_body(const SandboxOptions& options);
boost::json::object exec_body(const ExecOptions& options);
// The command of an exec, which must be UTF-8.
Result<boost::json::array> command_words(const std::vector<std::string>& command);

// The error of an answer that is not a success; its reason is the server's code.
Error explain_failure(int status, std::string_view body);

// `text`, or `text_base64` when it is not UTF-8; empty when neither is there.
Result<std::string> output_bytes(const boost::json::object& object, std::string_view name);

}  // namespace atl::cli
