#include "sandbox/output_patterns.h"

#include <algorithm>

#include "agent/file_protocol.h"
#include "base/check.h"
#include "base/log.h"

namespace atl::sandbox {

namespace {

constexpr std::string_view kUsualDirectory = agent::kOutputsDirectory;

bool is_within(std::string_view directory, std::string_view path) {
  return path == directory || (path.starts_with(directory) && path[directory.size()] == '/');
}

bool is_usual(const OutputPatterns::Pattern& pattern) {
  return is_within(kUsualDirectory, pattern.directory);
}

Result<OutputPatterns::Pattern> parse_one(const std::string& text) {
  ATOLL_TRY(Glob glob, Glob::parse(text));
  // The last part is never of the directory: it names files.
  size_t wildcard = std::min(text.find_first_of("*?[\\"), text.rfind('/') + 1);
  size_t slash = text.rfind('/', wildcard - 1);
  if (slash == text.npos || text[0] != '/')
    return Error(Code::kInvalid, "'" + text + "' is not an absolute path");
  std::string directory = slash == 0 ? "/" : text.substr(0, slash);
  return OutputPatterns::Pattern{std::move(directory), text.substr(slash + 1), std::move(glob)};
}

}  // namespace

OutputPatterns::OutputPatterns() {
  auto usual = parse_one(std::string(kUsualDirectory) + "/**");
  ATOLL_CHECK(usual.ok());
  patterns_.push_back(std::move(*usual));
}

Result<OutputPatterns> OutputPatterns::parse(const std::vector<std::string>& globs) {
  if (globs.empty()) return OutputPatterns();
  std::vector<Pattern> patterns;
  for (const std::string& text : globs) {
    ATOLL_TRY(Pattern pattern, parse_one(text));
    patterns.push_back(std::move(pattern));
  }
  std::stable_partition(patterns.begin(), patterns.end(), is_usual);
  return OutputPatterns(std::move(patterns));
}

bool OutputPatterns::are_usual() const {
  return std::all_of(patterns_.begin(), patterns_.end(), is_usual);
}

bool OutputPatterns::match(std::string_view path) const {
  auto matches = [path](const Pattern& pattern) { return pattern.glob.matches(path); };
  return std::any_of(patterns_.begin(), patterns_.end(), matches);
}

std::string OutputPatterns::name_of(std::string_view path) {
  bool usual = is_within(kUsualDirectory, path) && path != kUsualDirectory;
  return std::string(path.substr(usual ? kUsualDirectory.size() + 1 : 1));
}

std::vector<std::string> OutputPatterns::paths_of(std::string_view name) const {
  std::vector<std::string> paths;
  std::string usual = std::string(kUsualDirectory) + "/" + std::string(name);
  std::string elsewhere = "/" + std::string(name);
  if (match(usual)) paths.push_back(std::move(usual));
  // What is in /tmp/outputs has one name only.
  if (name_of(elsewhere) == name && match(elsewhere)) paths.push_back(std::move(elsewhere));
  return paths;
}

OutputPatterns output_patterns(Templates& templates, const store::SandboxRow& row) {
  auto found = templates.find_template(row.tenant, row.template_name);
  if (!found || !*found) return OutputPatterns();
  auto patterns = OutputPatterns::parse((*found)->manifest.outputs_collect);
  if (patterns) return std::move(*patterns);
  log_warning("bad patterns of outputs", {{"template", row.template_name}, patterns.error()});
  return OutputPatterns();
}

}  // namespace atl::sandbox
