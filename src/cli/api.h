// Api: the HTTP API v1 as the command line uses it. An error that the server explains comes back
// with its message and remedy, so that it can be shown as it is.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "cli/limits.h"
#include "cli/server.h"
#include "http/client.h"

namespace atl::cli {

class Api {
 public:
  explicit Api(Server server) : server_(std::move(server)) {}

  Result<boost::json::object> create_sandbox(const SandboxOptions& options);
  // With every field of the request as it stands.
  Result<boost::json::object> create_sandbox(boost::json::object request);
  Result<boost::json::object> show_sandbox(const std::string& id);
  Result<boost::json::object> show_receipt(const std::string& id);
  // Every page of the list.
  Result<boost::json::array> list_sandboxes();
  Result<void> remove_sandbox(const std::string& id);

  // An empty tenant is this host's own.
  Result<boost::json::object> create_key(const std::string& tenant, const std::string& name);
  Result<boost::json::array> list_keys();
  Result<void> revoke_key(const std::string& id);

  struct ExecRequest {
    std::string sandbox;
    std::vector<std::string> command;
    std::chrono::milliseconds timeout{0};  // 0: the server's
    ExecLimits limits = {};
    std::optional<std::string> on_output_limit = {};
  };
  // Waits for the end of the program.
  Result<boost::json::object> run_exec(const ExecRequest& request);
  // With every field of the request as it stands; the answer may take as long as its timeout_ms.
  Result<boost::json::object> start_exec(const std::string& sandbox, boost::json::object request);
  Result<boost::json::object> show_exec(const std::string& sandbox, const std::string& exec);

 private:
  struct Call {
    http::Method method;
    std::string target;
    boost::json::object body;
    std::chrono::milliseconds timeout;
  };
  Result<boost::json::object> call(const Call& call);
  Result<http::Response> send(const Call& call);

  Server server_;
};

// The body of a create: only what was said.
boost::json::object create_body(const SandboxOptions& options);

// The error of an answer that is not a success.
Error explain_failure(int status, std::string_view body);

// The output of an exec: `stdout`, or `stdout_base64` when it is not UTF-8; empty when neither is
// there.
Result<std::string> output_bytes(const boost::json::object& exec, std::string_view stream);

}  // namespace atl::cli
