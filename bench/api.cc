#include "api.h"

#include <chrono>

#include <fmt/format.h>

namespace atl::bench {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kRequestTimeout{30};
constexpr size_t kMaxShownBytes = 300;

Error refused(std::string_view what, const http::Response& response) {
  return Error(Code::kUnavailable, fmt::format("{}: status {}: {}", what, response.status,
                                               response.body.substr(0, kMaxShownBytes)));
}

bool was_from_pool(const json::object& answer) {
  const json::value* timings = answer.if_contains("timings");
  const json::value* from_pool =
      timings != nullptr ? timings->as_object().if_contains("from_pool") : nullptr;
  return from_pool != nullptr && from_pool->as_bool();
}

Result<void> check_ran(const json::object& answer, std::string_view expected_stdout) {
  const json::value* verdict = answer.if_contains("verdict");
  const json::value* output = answer.if_contains("stdout");
  if (verdict != nullptr && *verdict == "ok" && output != nullptr && output->is_string() &&
      std::string_view(output->get_string()) == expected_stdout)
    return {};
  return Error(Code::kCorrupt, "ran: " + json::serialize(answer).substr(0, kMaxShownBytes));
}

}  // namespace

Exec python() { return {{"python3", "-c", "print(1)"}, "1\n"}; }
Exec true_program() { return {{"/bin/true"}, ""}; }

Api::Api(const Options& options)
    : client_(http::Client::create(options.host, options.port, kRequestTimeout)),
      headers_{{"Authorization", "Bearer " + options.key}, {"Content-Type", "application/json"}},
      template_(options.template_name) {}

Result<Created> Api::create(json::object limits) {
  json::object request{{"template", template_}, {"limits", std::move(limits)}};
  ATOLL_TRY(json::object answer, post("/v1/sandboxes", std::move(request), 201));
  const json::value* id = answer.if_contains("id");
  if (id == nullptr || !id->is_string()) return Error(Code::kCorrupt, "create: answer without id");
  return Created{std::string(id->get_string()), was_from_pool(answer)};
}

Result<void> Api::execute(const std::string& sandbox, const Exec& exec) {
  json::object request{{"cmd", exec.command}, {"wait", true}};
  ATOLL_TRY(json::object answer, post("/v1/sandboxes/" + sandbox + "/execs", request, 200));
  return check_ran(answer, exec.expected_stdout);
}

Result<void> Api::remove(const std::string& sandbox) {
  ATOLL_TRY(http::Response response,
            client_->send(http::Method::kDelete, "/v1/sandboxes/" + sandbox, headers_, ""));
  if (response.status / 100 == 2) return {};
  return refused("delete " + sandbox, response);
}

Result<std::string> Api::create_context(const std::string& sandbox) {
  std::string contexts = "/v1/sandboxes/" + sandbox + "/contexts";
  ATOLL_TRY(json::object answer, post(contexts, {{"language", "python"}}, 201));
  const json::value* id = answer.if_contains("id");
  if (id == nullptr || !id->is_string()) return Error(Code::kCorrupt, "a context without id");
  return contexts + "/" + std::string(id->get_string());
}

Result<void> Api::run_code(const std::string& context) {
  ATOLL_TRY(json::object answer,
            post(context + "/runs", {{"code", "print(1)"}, {"wait", true}}, 200));
  return check_ran(answer, "1\n");
}

Result<bool> Api::run() {
  json::object request{{"template", template_}, {"code", "print(1)"}};
  ATOLL_TRY(json::object answer, post("/v1/run", request, 200));
  ATOLL_TRY_VOID(check_ran(answer, "1\n"));
  return was_from_pool(answer);
}

Result<json::object> Api::post(const std::string& target, const json::object& body, int wanted) {
  ATOLL_TRY(http::Response response,
            client_->send(http::Method::kPost, target, headers_, json::serialize(body)));
  if (response.status != wanted) return refused("POST " + target, response);
  boost::system::error_code error;
  json::value answer = json::parse(response.body, error);
  if (error || !answer.is_object())
    return Error(Code::kCorrupt, "POST " + target + ": the answer is no JSON object");
  return std::move(answer.get_object());
}

}  // namespace atl::bench
