#include "cli/selftest/sandboxes.h"

#include <chrono>
#include <thread>

#include <boost/json/array.hpp>

namespace atl::cli::selftest {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr const char* kTemplate = "selftest";
constexpr const char* kProgram = "/victims/atoll-victims";
// Should this program be killed, they go by themselves.
constexpr int64_t kTimeToLiveMs = 30 * 60 * 1000;
constexpr int64_t kBeatTimeoutMs = 30'000;
constexpr milliseconds kNeighbourStart{10'000};

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return "";
  return std::string(value->as_string().c_str(), value->as_string().size());
}

}  // namespace

json::object Sandboxes::new_sandbox() const {
  return {{"template", kTemplate},
          {"ttl_ms", kTimeToLiveMs},
          {"isolation", isolation_},
          {"metadata", json::object{{"purpose", "selftest"}}}};
}

Result<std::string> Sandboxes::create(json::object request) {
  // Held while the call is made, so that an interrupt finds either none or its id.
  std::lock_guard lock(mutex_);
  if (closed_) return Error(Code::kCancelled, "the selftest is ending");
  ATOLL_TRY(json::object sandbox, api_.create_sandbox(std::move(request)));
  std::string id = text_of(sandbox, "id");
  if (id.empty()) return Error(Code::kCorrupt, "the server's answer has no id");
  alive_.insert(id);
  std::string wall = text_of(sandbox, "isolation");
  if (wall != isolation_)
    return Error(Code::kUnsupported, "this host gives " + wall + " instead of " + isolation_);
  return id;
}

Result<void> Sandboxes::remove(const std::string& id) {
  ATOLL_TRY_VOID(Api(server_).remove_sandbox(id));
  std::lock_guard lock(mutex_);
  alive_.erase(id);
  return {};
}

Result<void> Sandboxes::remove_all() {
  std::set<std::string> all;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    all = alive_;
  }
  Result<void> first;
  for (const std::string& id : all) {
    auto removed = remove(id);
    if (!removed && first) first = std::move(removed).error().with_context("remove " + id);
  }
  return first;
}

Result<void> Sandboxes::start_neighbour() {
  ATOLL_TRY(neighbour_, create(new_sandbox()));
  json::object request = {{"cmd", json::array{kProgram, "neighbour", "3600"}},
                          {"timeout_ms", kTimeToLiveMs}};
  ATOLL_TRY(json::object exec, api_.start_exec(neighbour_, std::move(request)));
  std::string id = text_of(exec, "id");
  auto deadline = std::chrono::steady_clock::now() + kNeighbourStart;
  while (std::chrono::steady_clock::now() < deadline) {
    ATOLL_TRY(json::object now, api_.show_exec(neighbour_, id));
    std::string output = text_of(now, "stdout");
    if (output == "ready\n") return {};
    if (text_of(now, "state") == "ended")
      return Error(Code::kUnavailable, "the neighbour did not start: " + output);
    std::this_thread::sleep_for(milliseconds(10));
  }
  return Error(Code::kTimeout, "the neighbour did not start");
}

Result<std::string> Sandboxes::beat() {
  json::object request = {{"cmd", json::array{kProgram, "neighbour", "beat"}},
                          {"timeout_ms", kBeatTimeoutMs},
                          {"wait", true}};
  ATOLL_TRY(json::object exec, api_.start_exec(neighbour_, std::move(request)));
  if (text_of(exec, "verdict") != "ok")
    return Error(Code::kUnavailable, "its beat ended as " + text_of(exec, "verdict"));
  return text_of(exec, "stdout");
}

Result<void> Sandboxes::check_shared() {
  if (shared_.empty()) return {};
  auto shown = api_.show_sandbox(shared_);
  if (shown && text_of(*shown, "state") == "running") return {};
  std::string used_up = std::move(shared_);
  shared_.clear();
  return remove(used_up);
}

Result<std::string> Sandboxes::sandbox_for(const Victim& victim) {
  json::object request = new_sandbox();
  if (victim.place == Place::kFresh) {
    json::object limits;
    for (const auto& [name, value] : victim.limits) limits[name] = value;
    if (!limits.empty()) request["limits"] = std::move(limits);
    ATOLL_TRY(fresh_, create(std::move(request)));
    return fresh_;
  }
  ATOLL_TRY_VOID(check_shared());
  if (shared_.empty()) {
    ATOLL_TRY(shared_, create(std::move(request)));
  }
  return shared_;
}

Result<json::object> Sandboxes::run(const Victim& victim, const std::string& user) {
  ATOLL_TRY(std::string sandbox, sandbox_for(victim));
  json::array command = {kProgram, victim.name};
  if (!victim.command.empty()) command = {victim.command};
  json::object request = {{"cmd", std::move(command)},
                          {"user", user},
                          {"env", environment_},
                          {"timeout_ms", victim.timeout.count()},
                          {"wait", true}};
  if (!victim.directory.empty()) request["cwd"] = victim.directory;
  for (const auto& [name, value] : victim.exec_fields) request[name] = value;
  return api_.start_exec(sandbox, std::move(request));
}

Result<void> Sandboxes::forget_fresh() {
  if (fresh_.empty()) return {};
  std::string used_up = std::move(fresh_);
  fresh_.clear();
  return remove(used_up);
}

}  // namespace atl::cli::selftest
