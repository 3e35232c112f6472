#include "api/e2b/build_script.h"

#include <algorithm>

#include "api/e2b/path.h"
#include "sandbox/environment.h"

namespace atl::api::e2b {
namespace {

constexpr size_t kMaxTitleBytes = 200;
constexpr std::string_view kGlobLetters = "*?[]";

Error invalid(const BuildStep& step, const std::string& why) {
  return Error(Code::kInvalid, "steps: " + step.type + " " + why).with_reason("invalid_field");
}

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// Quoted but for what stands for other letters.
std::string quoted_glob(std::string_view text) {
  std::string result;
  for (char c : text)
    result += kGlobLetters.find(c) == kGlobLetters.npos ? shell_quoted({&c, 1}) : std::string(1, c);
  return result;
}

bool is_user(std::string_view text) {
  auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 64 && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), is_plain);
}

// "user" or "user:group".
bool is_owner(std::string_view text) {
  size_t colon = text.find(':');
  return is_user(text.substr(0, colon)) && (colon == text.npos || is_user(text.substr(colon + 1)));
}

bool is_mode(std::string_view text) {
  return text.size() >= 3 && text.size() <= 4 && text.find_first_not_of("01234567") == text.npos;
}

std::string argument(const BuildStep& step, size_t number) {
  return number < step.arguments.size() ? step.arguments[number] : "";
}

// What is shown of a step, in one line.
std::string title(const std::string& type, std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  if (text.size() > kMaxTitleBytes) text = text.substr(0, kMaxTitleBytes) + "...";
  return "# " + type + " " + text + "\n";
}

// As docker copies: of a directory what is in it, of a file the file itself, which gets the name of
// the target unless that is a directory.
constexpr std::string_view kCopy = R"sh(
want() { [ -d "$1" ] || { mkdir -p "$1"; chown "$owner" "$1"; }; }
mkdir "$from"
tar -xpof "$from.tar" -C "$from"
chown -R -h "$owner" "$from"
[ -z "$mode" ] || chmod -R "$mode" "$from"
cd "$from"
for one in "$@"; do
  if [ -d "$one" ] && [ ! -L "$one" ]; then
    want "$to"
    for inner in "$one"/* "$one"/.[!.]* "$one"/..?*; do
      if [ -e "$inner" ] || [ -L "$inner" ]; then cp -a "$inner" "$to/"; fi
    done
  elif [ $# -gt 1 ] || [ -n "$slash" ] || [ -d "$to" ]; then
    want "$to"
    cp -a "$one" "$to/"
  else
    want "$(dirname "$to")"
    cp -a "$one" "$to"
  fi
done
cd /
rm -rf "$from" "$from.tar"
)sh";

}  // namespace

std::string BuildScript::change_directory() const {
  return directory_.empty() ? "cd ~" + user_ + "\n" : "cd " + shell_quoted(directory_) + "\n";
}

std::string BuildScript::absolute(const std::string& path) const {
  std::string base = directory_.empty() ? home_of(user_) : directory_;
  if (path.starts_with('/')) return path;
  if (path == "~" || path.starts_with("~/")) return home_of(user_) + path.substr(1);
  return base + (base.ends_with('/') ? "" : "/") + (path.starts_with("./") ? path.substr(2) : path);
}

Result<void> BuildScript::add(const BuildStep& step) {
  Result<std::string> command = invalid(step, "is not a step");
  if (step.type == "RUN") command = run(step);
  if (step.type == "COPY") command = copy(step);
  if (step.type == "WORKDIR") command = enter_directory(step);
  if (step.type == "USER") command = become_user(step);
  if (step.type == "ENV") command = set_variables(step);
  if (!command) return std::move(command).error();
  commands_.push_back(std::move(*command));
  return {};
}

Result<std::string> BuildScript::run(const BuildStep& step) const {
  std::string command = argument(step, 0);
  std::string user = argument(step, 1).empty() ? user_ : argument(step, 1);
  if (command.empty()) return invalid(step, "needs a command");
  if (!is_user(user)) return invalid(step, "names no user");
  std::string script = title("RUN", command);
  for (const auto& [name, value] : variables_)
    script += "export " + name + "=" + shell_quoted(value) + "\n";
  // With bash where there is one, as E2B does.
  script += "shell=/bin/sh\n[ ! -x /bin/bash ] || shell=/bin/bash\n";
  script += change_directory();
  return script + "exec sudo -u " + shell_quoted(user) + " \"$shell\" -l -c " +
         shell_quoted(command);
}

Result<std::string> BuildScript::copy(const BuildStep& step) const {
  std::string from = argument(step, 0), to = argument(step, 1);
  std::string owner = argument(step, 2).empty() ? user_ : argument(step, 2);
  std::string mode = argument(step, 3);
  if (from.empty() || to.empty()) return invalid(step, "needs a source and a target");
  if (!is_owner(owner)) return invalid(step, "names no user");
  if (!mode.empty() && !is_mode(mode)) return invalid(step, "has a mode that is none");
  if (step.archive.empty()) return invalid(step, "has no filesHash");
  if (owner.find(':') == owner.npos) owner += ":";
  std::string place = "/" + std::string(kCopyPlace) + "/" + step.archive;
  while (from.ends_with('/') && from.size() > 1) from.pop_back();
  std::string script = title("COPY", from + " " + to);
  script += "from=" + shell_quoted(place) + " to=" + shell_quoted(absolute(to)) +
            " owner=" + shell_quoted(owner) + " mode=" + shell_quoted(mode) +
            " slash=" + (to.ends_with('/') ? "/" : "") + "\n";
  // What the pattern means is known when the archive is unpacked, in its directory.
  bool is_deep = from.find("**") != from.npos;
  std::string body(kCopy);
  constexpr std::string_view kLoop = "for one in";
  body.insert(body.find(kLoop), "IFS=\nset -- " + (is_deep ? "." : quoted_glob(from)) + "\n");
  return script + body;
}

Result<std::string> BuildScript::enter_directory(const BuildStep& step) {
  std::string path = argument(step, 0);
  if (path.empty()) return invalid(step, "needs a directory");
  directory_ = absolute(path);
  std::string place = shell_quoted(directory_);
  return title("WORKDIR", path) + "[ -d " + place + " ] || { mkdir -p " + place + "; chown " +
         shell_quoted(user_ + ":") + " " + place + "; }";
}

Result<std::string> BuildScript::become_user(const BuildStep& step) {
  std::string name = argument(step, 0);
  if (!is_user(name)) return invalid(step, "names no user");
  user_ = name;
  return title("USER", name) + "id -u " + shell_quoted(name) + " >/dev/null";
}

Result<std::string> BuildScript::set_variables(const BuildStep& step) {
  std::string names;
  if (step.arguments.empty() || step.arguments.size() % 2 != 0)
    return invalid(step, "needs names and values");
  for (size_t i = 0; i < step.arguments.size(); i += 2) {
    const std::string& name = step.arguments[i];
    if (!sandbox::is_variable_name(name))
      return invalid(step, "has a name that no variable can have");
    std::erase_if(variables_, [&](const auto& known) { return known.first == name; });
    variables_.emplace_back(name, step.arguments[i + 1]);
    names += (names.empty() ? "" : " ") + name;
  }
  return title("ENV", names) + ":";
}

}  // namespace atl::api::e2b
