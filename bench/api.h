// One client of the HTTP API on one keep-alive connection, for one thread. Every call checks that
// what was asked for was done, so that no figure is one of a failure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"
#include "http/client.h"
#include "options.h"

namespace atl::bench {

struct Created {
  std::string id;
  bool from_pool = false;
};

struct Exec {
  boost::json::array command;
  std::string_view expected_stdout;
};

Exec python();
Exec true_program();

class Api {
 public:
  explicit Api(const Options& options);

  Result<Created> create(boost::json::object limits = {});
  // To its end.
  Result<void> execute(const std::string& sandbox, const Exec& exec);
  Result<void> remove(const std::string& sandbox);
  // The path of a new context of Python, and code that is run in it to its end.
  Result<std::string> create_context(const std::string& sandbox);
  Result<void> run_code(const std::string& context);
  // POST /v1/run of Python; whether its isolate was ready.
  Result<bool> run();

 private:
  Result<boost::json::object> post(const std::string& target, const boost::json::object& body,
                                   int wanted);

  std::unique_ptr<http::Client> client_;
  http::Headers headers_;
  std::string template_;
};

}  // namespace atl::bench
