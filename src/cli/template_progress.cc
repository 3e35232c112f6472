#include "cli/template_progress.h"

#include <stdio.h>
#include <unistd.h>

#include <deque>

#include <boost/json/parse.hpp>

#include "cli/readable.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr size_t kShownLines = 30;
constexpr unsigned kBarWidth = 20;
constexpr const char* kEraseLine = "\r\033[K";

unsigned number_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_int64() && value->get_int64() > 0
             ? static_cast<unsigned>(value->get_int64())
             : 0;
}

// What a build has said, on standard error.
class BuildView {
 public:
  BuildView(std::string name, Verbosity verbosity)
      : name_(std::move(name)), verbosity_(verbosity), is_terminal_(isatty(STDERR_FILENO) == 1) {}
  ~BuildView() { erase(); }
  BuildView(const BuildView&) = delete;
  BuildView& operator=(const BuildView&) = delete;

  void show_step(const json::object& build) {
    line_ = name_ + "  " +
            step_line(number_of(build, "step"), number_of(build, "steps"),
                      readable_field(build, "title"));
    if (is_terminal_)
      fprintf(stderr, "%s%s", kEraseLine, line_.c_str());
    else
      fprintf(stderr, "%s\n", line_.c_str());
  }

  void add_log(std::string_view text) {
    for (char c : text) {
      if (c != '\n') {
        partial_ += c;
        continue;
      }
      if (verbosity_ == Verbosity::kVerbose) show_line(partial_);
      last_.push_back(std::move(partial_));
      partial_.clear();
      if (last_.size() > kShownLines) last_.pop_front();
    }
  }

  void show_last() {
    erase();
    if (verbosity_ == Verbosity::kVerbose) return;
    for (const std::string& line : last_) fprintf(stderr, "  | %s\n", escape_line(line).c_str());
  }

 private:
  void erase() const {
    if (is_terminal_ && !line_.empty()) fprintf(stderr, "%s", kEraseLine);
  }
  void show_line(const std::string& line) const {
    erase();
    fprintf(stderr, "%s\n", escape_line(line).c_str());
    if (is_terminal_) fprintf(stderr, "%s", line_.c_str());
  }

  std::string name_;
  Verbosity verbosity_;
  bool is_terminal_;
  std::string line_, partial_;
  std::deque<std::string> last_;
};

json::object data_of(const http::ReceivedEvent& event) {
  json::error_code error;
  json::value value = json::parse(event.data, error);
  return !error && value.is_object() ? value.get_object() : json::object();
}

}  // namespace

std::string step_line(unsigned step, unsigned steps, const std::string& title) {
  unsigned done = steps == 0 ? 0 : std::min(step, steps) * kBarWidth / steps;
  std::string bar(done, '=');
  bar += done < kBarWidth ? ">" : "";
  bar.resize(kBarWidth, ' ');
  return "[" + bar + "] " + std::to_string(step) + "/" + std::to_string(steps) + " " + title;
}

Result<json::object> follow_build(Api& api, const std::string& name, Verbosity verbosity) {
  BuildView view(name, verbosity);
  json::object end;
  std::string last_id;
  while (end.empty()) {
    Api::Call call{.target = "/v1/templates/" + percent_encode(name, "-") + "/build"};
    call.headers.add("Accept", "text/event-stream");
    if (!last_id.empty()) call.headers.add("Last-Event-ID", last_id);
    std::string before = last_id;
    auto followed = api.events(call, [&](const http::ReceivedEvent& event) {
      last_id = event.id;
      json::object data = data_of(event);
      if (event.name == "step") view.show_step(data);
      if (event.name == "log") view.add_log(text_field(data, "text"));
      if (event.name == "end") end = std::move(data);
      return end.empty();
    });
    if (!followed && end.empty()) return std::move(followed).error();
    if (end.empty() && last_id == before)
      return Error(Code::kUnavailable, "the server ended the log of the build");
  }
  if (text_field(end, "state") == "built") return end;
  view.show_last();
  return Error(Code::kInvalid,
               "the template " + name + " was not built: " + text_field(end, "failure"))
      .with_reason("build_failed");
}

Result<json::object> call_when_built(Api& api, const Api::Call& call) {
  auto answer = api.call(call);
  if (answer || answer.error().reason() != "template_building") return answer;
  std::string name = text_field(call.body, "template");
  ATOLL_TRY_VOID(follow_build(api, name.substr(0, name.find('@')), Verbosity::kQuiet));
  return api.call(call);
}

Result<json::object> create_when_built(Api& api, json::object request) {
  return call_when_built(
      api, {.method = http::Method::kPost, .target = "/v1/sandboxes", .body = std::move(request)});
}

Result<json::object> create_own_when_built(Api& api, const SandboxOptions& options) {
  json::object request = create_body(options);
  request["singleton"] = false;
  return create_when_built(api, std::move(request));
}

}  // namespace atl::cli
