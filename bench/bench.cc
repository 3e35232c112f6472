// The Atoll side of `make bench`: times the HTTP API of a running Atoll over one keep-alive
// connection per client, and prints the samples as one JSON object. bench/run makes the table.
//
//   ATOLL_KEY=... atoll-bench --url http://127.0.0.1:4700 [--runs 100] [--warm-ups 5] [--seconds
//   10]
//
// Every sandbox it made is deleted again, also when a measurement fails.
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/json/src.hpp>
#include <fmt/format.h>

#include "http/client.h"

namespace atl {
namespace {

namespace json = boost::json;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::chrono::seconds kRequestTimeout{30};
constexpr int kClients = 2;
constexpr size_t kMaxShownBytes = 300;

struct Options {
  std::string host;
  unsigned short port = 0;
  std::string key;
  int runs = 100;
  int warm_ups = 5;
  int seconds = 10;
};

struct Exec {
  json::array command;
  std::string_view expected_stdout;
};

Exec python() { return {{"python3", "-c", "print(1)"}, "1\n"}; }
Exec true_program() { return {{"/bin/true"}, ""}; }

class Stopwatch {
 public:
  double elapsed_ms() const {
    return Milliseconds(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// One client of the API, for one thread.
class Api {
 public:
  explicit Api(const Options& options)
      : client_(http::Client::create(options.host, options.port, kRequestTimeout)),
        headers_{{"Authorization", "Bearer " + options.key}, {"Content-Type", "application/json"}} {
  }

  Result<std::string> create_sandbox() {
    ATOLL_TRY(json::object answer, post("/v1/sandboxes", {{"template", "python"}}, 201));
    const json::value* id = answer.if_contains("id");
    if (id == nullptr || !id->is_string())
      return Error(Code::kCorrupt, "create: answer without id");
    return std::string(id->get_string());
  }

  // Runs to the end and checks that the program did what it should.
  Result<void> run(const std::string& sandbox, const Exec& exec) {
    json::object request{{"cmd", exec.command}, {"wait", true}};
    ATOLL_TRY(json::object answer, post("/v1/sandboxes/" + sandbox + "/execs", request, 200));
    const json::value* verdict = answer.if_contains("verdict");
    const json::value* output = answer.if_contains("stdout");
    if (verdict != nullptr && *verdict == "ok" && output != nullptr && output->is_string() &&
        std::string_view(output->get_string()) == exec.expected_stdout)
      return {};
    return Error(Code::kCorrupt, "exec: " + json::serialize(answer).substr(0, kMaxShownBytes));
  }

  Result<void> remove(const std::string& sandbox) {
    ATOLL_TRY(http::Response response,
              client_->send(http::Method::kDelete, "/v1/sandboxes/" + sandbox, headers_, ""));
    if (response.status / 100 == 2) return {};
    return refused("delete " + sandbox, response);
  }

 private:
  static Error refused(std::string_view what, const http::Response& response) {
    return Error(Code::kUnavailable, fmt::format("{}: status {}: {}", what, response.status,
                                                 response.body.substr(0, kMaxShownBytes)));
  }

  Result<json::object> post(const std::string& target, const json::object& body, int wanted) {
    ATOLL_TRY(http::Response response,
              client_->send(http::Method::kPost, target, headers_, json::serialize(body)));
    if (response.status != wanted) return refused("POST " + target, response);
    boost::system::error_code error;
    json::value answer = json::parse(response.body, error);
    if (error || !answer.is_object())
      return Error(Code::kCorrupt, "POST " + target + ": the answer is no JSON object");
    return std::move(answer.get_object());
  }

  std::unique_ptr<http::Client> client_;
  http::Headers headers_;
};

struct ColdSample {
  double create_ms, create_run_ms;
};

// Creates, runs Python and deletes; the deletion is not part of the times.
Result<ColdSample> cold_run(Api& api) {
  Stopwatch watch;
  ATOLL_TRY(std::string sandbox, api.create_sandbox());
  double create_ms = watch.elapsed_ms();
  Result<void> ran = api.run(sandbox, python());
  double create_run_ms = watch.elapsed_ms();
  Result<void> removed = api.remove(sandbox);
  if (!ran) return std::move(ran).error();
  if (!removed) return std::move(removed).error();
  return ColdSample{create_ms, create_run_ms};
}

Result<void> measure_cold(Api& api, const Options& options, json::object& figures) {
  json::array create, run, both;
  for (int i = -options.warm_ups; i < options.runs; ++i) {
    ATOLL_TRY(ColdSample sample, cold_run(api));
    if (i < 0) continue;
    create.push_back(sample.create_ms);
    run.push_back(sample.create_run_ms - sample.create_ms);
    both.push_back(sample.create_run_ms);
  }
  figures["create_ms"] = std::move(create);
  figures["run_ms"] = std::move(run);
  figures["create_run_ms"] = std::move(both);
  return {};
}

Result<json::array> time_execs(Api& api, const std::string& sandbox, const Options& options) {
  json::array samples;
  for (int i = -options.warm_ups; i < options.runs; ++i) {
    Stopwatch watch;
    ATOLL_TRY_VOID(api.run(sandbox, true_program()));
    if (i >= 0) samples.push_back(watch.elapsed_ms());
  }
  return samples;
}

Result<void> measure_exec(Api& api, const Options& options, json::object& figures) {
  ATOLL_TRY(std::string sandbox, api.create_sandbox());
  Result<json::array> samples = time_execs(api, sandbox, options);
  Result<void> removed = api.remove(sandbox);
  if (!samples) return std::move(samples).error();
  figures["exec_true_ms"] = std::move(*samples);
  return removed;
}

// What the clients of the sustained measurement count together.
class Tally {
 public:
  void succeed() { ++succeeded_; }
  void fail(const Error& error) {
    std::lock_guard lock(mutex_);
    ++failed_;
    if (first_failure_.empty()) first_failure_ = error.message();
  }
  void store(double elapsed_ms, json::object& figures) const {
    figures["per_second"] = static_cast<double>(succeeded_.load()) * 1000 / elapsed_ms;
    figures["failed"] = failed_;
    figures["failure"] = first_failure_;
  }

 private:
  std::atomic<int> succeeded_ = 0;
  std::mutex mutex_;
  int failed_ = 0;
  std::string first_failure_;
};

// Counts only runs whose sandbox is gone again before the time is up.
void measure_sustained(const Options& options, json::object& figures) {
  Tally tally;
  Stopwatch watch;
  double limit_ms = options.seconds * 1000.0;
  auto work = [&] {
    Api api(options);
    while (watch.elapsed_ms() < limit_ms) {
      Result<ColdSample> sample = cold_run(api);
      if (!sample) {
        tally.fail(sample.error());
      } else if (watch.elapsed_ms() <= limit_ms) {
        tally.succeed();
      }
    }
  };
  std::vector<std::jthread> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back(work);
  clients.clear();
  tally.store(limit_ms, figures);
}

std::optional<int> parse_count(std::string_view text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

bool parse_url(std::string_view url, Options& options) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  size_t colon = url.rfind(':');
  if (colon == url.npos || colon == 0) return false;
  std::optional<int> port = parse_count(url.substr(colon + 1));
  if (!port || *port > 65'535) return false;
  options.host = url.substr(0, colon);
  options.port = static_cast<unsigned short>(*port);
  return true;
}

bool set_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--url") return parse_url(value, options);
  std::optional<int> count = parse_count(value);
  if (!count) return false;
  if (name == "--runs") options.runs = *count;
  if (name == "--warm-ups") options.warm_ups = *count;
  if (name == "--seconds") options.seconds = *count;
  return name == "--runs" || name == "--warm-ups" || name == "--seconds";
}

std::optional<Options> parse_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count || !set_option(arguments[i], arguments[i + 1], options)) {
      fmt::print(stderr, "atoll-bench: bad option {}\n", arguments[i]);
      return std::nullopt;
    }
  }
  const char* key = getenv("ATOLL_KEY");
  if (key == nullptr || options.port == 0) {
    fmt::print(stderr, "atoll-bench: want --url http://host:port and ATOLL_KEY\n");
    return std::nullopt;
  }
  options.key = key;
  return options;
}

Result<json::object> measure(const Options& options) {
  json::object figures;
  Api api(options);
  ATOLL_TRY_VOID(measure_cold(api, options, figures));
  ATOLL_TRY_VOID(measure_exec(api, options, figures));
  measure_sustained(options, figures);
  return figures;
}

}  // namespace
}  // namespace atl

int main(int count, char** arguments) {
  std::optional<atl::Options> options = atl::parse_options(count, arguments);
  if (!options) return 2;
  atl::Result<boost::json::object> figures = atl::measure(*options);
  if (!figures) {
    fmt::print(stderr, "atoll-bench: {}\n", figures.error().message());
    return 1;
  }
  fmt::print("{}\n", boost::json::serialize(*figures));
  return 0;
}
