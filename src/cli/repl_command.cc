#include "cli/repl_command.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include <boost/json/parse.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/base64.h"
#include "cli/line_editor.h"
#include "cli/readable.h"
#include "cli/template_progress.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::hours kLongestRun{24};
constexpr std::chrono::seconds kSilence{60};  // of events, which come at least every 15 s
constexpr size_t kMaxHistory = 1000;

struct ReplContext {
  std::string target;  // of the context
  std::string language;
};

// While it lives, SIGINT interrupts the run and not this program.
class RunInterrupts {
 public:
  RunInterrupts(Api api, std::string target) {
    sigset_t set = interrupt_set();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    thread_ = std::thread([this, api = std::move(api), target = std::move(target)]() mutable {
      sigset_t waited = interrupt_set();
      timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
      while (!over_) {
        if (sigtimedwait(&waited, nullptr, &pause) != SIGINT) continue;
        auto sent = api.call({.method = http::Method::kPost, .target = target + "/interrupt"});
        if (!sent) fprintf(stderr, "atoll: %s\n", escape_line(sent.error().message()).c_str());
      }
    });
  }
  ~RunInterrupts() {
    over_ = true;
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  RunInterrupts(const RunInterrupts&) = delete;
  RunInterrupts& operator=(const RunInterrupts&) = delete;

 private:
  static sigset_t interrupt_set() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
  }
  std::atomic<bool> over_ = false;
  sigset_t before_;
  std::thread thread_;
};

Result<json::object> parse_data(const std::string& text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object())
    return Error(Code::kCorrupt, "the server sent an event that is no JSON object");
  return value.get_object();
}

// Pictures are files: a terminal shows none.
Result<void> save_picture(const std::string& type, const std::string& data) {
  static int count = 0;
  std::string ending = type == "image/png" ? ".png" : type == "image/jpeg" ? ".jpg" : ".pdf";
  ATOLL_TRY(std::string bytes, decode_base64(data));
  std::string name;
  do {
    name = "atoll-" + std::to_string(++count) + ending;
  } while (access(name.c_str(), F_OK) == 0);
  ATOLL_TRY_VOID(replace_file(name, bytes, 0644));
  printf("[%s]\n", name.c_str());
  return {};
}

Result<void> show_result(const json::object& result) {
  const json::value* mime = result.if_contains("mime");
  if (mime == nullptr || !mime->is_object()) return {};
  for (const char* type : {"image/png", "image/jpeg", "application/pdf"}) {
    const json::value* data = mime->get_object().if_contains(type);
    if (data == nullptr || !data->is_string()) continue;
    return save_picture(type, std::string(data->get_string()));
  }
  std::string text = text_field(mime->get_object(), "text/plain");
  if (!text.empty()) printf("%s\n", escape_controls(text).c_str());
  return {};
}

class RunView {
 public:
  Result<void> take(const http::ReceivedEvent& event) {
    ATOLL_TRY(json::object data, parse_data(event.data));
    if (event.name == "stdout" || event.name == "stderr") {
      std::string bytes = text_field(data, "text");
      if (data.contains("base64")) {
        ATOLL_TRY(bytes, decode_base64(text_field(data, "base64")));
      }
      return (event.name == "stdout" ? out_ : err_).write(bytes);
    }
    if (event.name == "result") {
      ATOLL_TRY_VOID(show_result(data));
    } else if (event.name == "error") {
      std::string trace = escape_controls(text_field(data, "traceback"));
      if (trace.empty()) trace = escape_line(text_field(data, "value"));
      fprintf(stderr, "%s\n", coloured(Colour::kRed, trace).c_str());
    } else if (event.name == "end") {
      show_end(data);
    }
    fflush(stdout);
    return {};
  }
  bool ended() const { return ended_; }

 private:
  void show_end(const json::object& run) {
    ended_ = true;
    std::string verdict = text_field(run, "verdict");
    const json::value* lost = run.if_contains("state_lost");
    bool is_lost = lost != nullptr && lost->is_bool() && lost->get_bool();
    if (verdict != "ok" && verdict != "exception")
      fprintf(stderr, "[%s]\n", escape_line(verdict).c_str());
    if (is_lost) fprintf(stderr, "[the interpreter ended; a fresh one has taken its place]\n");
  }

  OutputWriter out_{STDOUT_FILENO, OutputMode::kSafe};
  OutputWriter err_{STDERR_FILENO, OutputMode::kSafe};
  bool ended_ = false;
};

Result<void> run_code(Api& api, const ReplContext& context, const std::string& code) {
  json::object body;
  body["code"] = code;
  body["timeout_ms"] = std::chrono::milliseconds(kLongestRun).count();
  Api::Call call{.method = http::Method::kPost,
                 .target = context.target + "/runs",
                 .body = std::move(body),
                 .timeout = kSilence};
  RunInterrupts interrupts(api, context.target);
  RunView view;
  Result<void> shown;
  ATOLL_TRY_VOID(api.events(call, [&](const http::ReceivedEvent& event) {
    shown = view.take(event);
    return shown.ok() && !view.ended();
  }));
  return shown;
}

Completion complete(Api& api, const ReplContext& context, const std::string& text) {
  json::object body;
  body["code"] = text;
  auto answer = api.call(
      {.method = http::Method::kPost, .target = context.target + "/complete", .body = body});
  Completion completion;
  if (!answer) return completion;
  const json::value* matches = answer->if_contains("matches");
  if (matches == nullptr || !matches->is_array()) return completion;
  for (const json::value& match : matches->get_array())
    if (match.is_string()) completion.matches.emplace_back(match.get_string());
  // Given in characters.
  uint64_t left = number_field(*answer, "start");
  auto begins = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80; };
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins(at) && left-- == 0) break;
  completion.start = at;
  return completion;
}

// One entry a line; the line ends within are written as \n.
std::string history_file(const std::string& language) {
  const char* state = getenv("XDG_STATE_HOME");
  const char* home = getenv("HOME");
  if (state == nullptr && home == nullptr) return "";
  std::filesystem::path folder = state != nullptr ? state : std::string(home) + "/.local/state";
  std::error_code ignored;  // without the folder there is no history
  std::filesystem::create_directories(folder / "atoll", ignored);
  return folder / "atoll" / ("history-" + language);
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

void load_history(const std::string& file, std::vector<std::string>& history) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) history.push_back(with(line, "\\n", "\n"));
  if (history.size() > kMaxHistory)
    history.erase(history.begin(), history.end() - static_cast<long>(kMaxHistory));
}

void remember(const std::string& file, const std::string& code, std::vector<std::string>& history) {
  if (!history.empty() && history.back() == code) return;
  history.push_back(code);
  if (file.empty()) return;
  mode_t before = umask(077);
  std::ofstream(file, std::ios::app) << with(code, "\n", "\\n") << '\n';
  umask(before);
}

// Nothing at the end of the input.
Result<std::optional<std::string>> read_code(LineEditor& editor, const std::string& language) {
  std::string code;
  while (true) {
    bool is_first = code.empty();
    ATOLL_TRY(LineEditor::Line line, editor.read(is_first ? ">>> " : "... "));
    if (line.end == LineEditor::End::kEnd) {
      if (is_first) return std::optional<std::string>();
      return std::optional(code);
    }
    if (line.end == LineEditor::End::kInterrupt) return std::optional(std::string());
    code += (is_first ? "" : "\n") + line.text;
    if (!needs_more(language, code)) return std::optional(code);
  }
}

Result<void> talk(Api& api, const ReplContext& context) {
  auto find = [&](const std::string& text) { return complete(api, context, text); };
  LineEditor editor(STDIN_FILENO, STDOUT_FILENO, find);
  std::string file = history_file(context.language);
  load_history(file, editor.history());
  while (true) {
    ATOLL_TRY(auto code, read_code(editor, context.language));
    if (!code) return {};
    if (code->find_first_not_of(" \t\n") == std::string::npos) continue;
    remember(file, *code, editor.history());
    ATOLL_TRY_VOID(run_code(api, context, *code));
  }
}

// What is piped in is one run.
Result<void> run_input(Api& api, const ReplContext& context) {
  std::string code{std::istreambuf_iterator<char>(std::cin), {}};
  return run_code(api, context, code);
}

Result<void> use_sandbox(Api& api, const std::string& id, const std::string& language) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  json::object body;
  body["language"] = language;
  ATOLL_TRY(json::object made, api.call({.method = http::Method::kPost,
                                         .target = target + "/contexts",
                                         .body = std::move(body)}));
  ReplContext context{target + "/contexts/" + percent_encode(text_field(made, "id")),
                      text_field(made, "language")};
  bool is_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (is_terminal)
    printf("%s\nCtrl-C interrupts, Ctrl-D ends\n", readable_field(made, "interpreter").c_str());
  fflush(stdout);
  Result<void> done = is_terminal ? talk(api, context) : run_input(api, context);
  auto removed = api.call({.method = http::Method::kDelete, .target = context.target});
  ATOLL_TRY_VOID(done);
  if (!removed) return std::move(removed).error();
  return {};
}

std::string language_of(const ReplCommand& repl) {
  if (!repl.language.empty()) return repl.language;
  if (repl.sandbox.template_name.starts_with("node")) return "javascript";
  return repl.sandbox.template_name == "bash" ? "bash" : "python";
}

size_t open_brackets(const std::string& code) {
  long depth = 0;
  char quote = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    char c = code[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote || (c == '\n' && quote != '`')) quote = 0;
    } else if (c == '\'' || c == '"' || c == '`') {
      quote = c;
    } else if (c == '#') {
      i = std::min(code.find('\n', i), code.size());
    } else {
      depth += std::string_view("([{").find(c) != std::string_view::npos ? 1 : 0;
      depth -= std::string_view(")]}").find(c) != std::string_view::npos ? 1 : 0;
    }
  }
  return depth > 0 ? static_cast<size_t>(depth) : 0;
}

size_t count_of(const std::string& code, std::string_view word) {
  size_t count = 0;
  for (size_t at = 0; (at = code.find(word, at)) != std::string::npos; at += word.size()) ++count;
  return count;
}

}  // namespace

bool needs_more(const std::string& language, const std::string& code) {
  std::string last = code.substr(code.rfind('\n') + 1);
  bool is_blank = last.find_first_not_of(" \t") == std::string::npos;
  if (!code.empty() && code.back() == '\\') return true;
  if (language != "python") return open_brackets(code) > 0;
  if (count_of(code, "\"\"\"") % 2 == 1 || count_of(code, "'''") % 2 == 1) return true;
  if (open_brackets(code) > 0) return true;
  bool is_block = code.find('\n') != std::string::npos || code.front() == '@' ||
                  (!last.empty() && last.find_last_not_of(" \t") != std::string::npos &&
                   last[last.find_last_not_of(" \t")] == ':');
  return is_block && !is_blank && !code.starts_with("%%");
}

Result<int> run_command(const CommandLine& line, const ReplCommand& repl) {
  if (line.format == Format::kJson)
    return Error(Code::kInvalid, "repl has no JSON to print\n  remedy: POST …/contexts");
  ATOLL_TRY(Api api, connect(line));
  if (!repl.id.empty()) {
    ATOLL_TRY_VOID(use_sandbox(api, repl.id, language_of(repl)));
    return 0;
  }
  ATOLL_TRY(json::object made, create_own_when_built(api, repl.sandbox));
  std::string id = text_field(made, "id");
  Result<void> used = use_sandbox(api, id, language_of(repl));
  ATOLL_TRY_VOID(api.remove_sandbox(id));
  ATOLL_TRY_VOID(used);
  return 0;
}

}  // namespace atl::cli
