#include "warden/options.h"

#include <charconv>
#include <limits>
#include <vector>

namespace atl::warden {
namespace {

constexpr size_t kMaxPathBytes = 1024;

Error invalid(std::string_view option, const char* what) {
  return Error(Code::kInvalid, std::string(option) + " " + what);
}

// Paths stand in mount points and, one a line, in the registry of uid ranges.
Result<std::string> parse_path(std::string_view option, std::string_view text) {
  if (text.size() < 2 || text.front() != '/') return invalid(option, "must be an absolute path");
  if (text.size() > kMaxPathBytes) return invalid(option, "is too long");
  if (text.back() == '/') return invalid(option, "must not end with a slash");
  for (std::string_view part : {"//", "/./", "/../", "\n"})
    if (text.find(part) != std::string_view::npos) return invalid(option, "is not a plain path");
  if (text.ends_with("/..") || text.ends_with("/.")) return invalid(option, "is not a plain path");
  return std::string(text);
}

Result<uint64_t> parse_number(std::string_view option, std::string_view text, uint64_t maximum) {
  uint64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value > maximum)
    return invalid(option, "is not a number in its range");
  return value;
}

Result<void> take(Options& options, std::string_view name, std::string_view value) {
  if (name == "--client-uid") {
    ATOLL_TRY(uint64_t uid, parse_number(name, value, std::numeric_limits<int32_t>::max()));
    options.client_uid = static_cast<uid_t>(uid);
  } else if (name == "--pool-bytes") {
    ATOLL_TRY(options.pool_bytes, parse_number(name, value, uint64_t{1} << 50));
  } else if (name == "--kernel-memory-growth") {
    ATOLL_TRY(options.kernel_memory_growth, parse_number(name, value, uint64_t{1} << 50));
  } else if (name == "--state-dir") {
    ATOLL_TRY(options.state_dir, parse_path(name, value));
  } else if (name == "--run-dir") {
    ATOLL_TRY(options.run_dir, parse_path(name, value));
  } else if (name == "--agent") {
    ATOLL_TRY(options.agent, parse_path(name, value));
  } else if (name == "--sudo") {
    ATOLL_TRY(options.sudo, parse_path(name, value));
  } else if (name == "--notary") {
    ATOLL_TRY(options.notary, parse_path(name, value));
  } else {
    return invalid(name, "is not an option");
  }
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<char* const> arguments) {
  Options options;
  std::vector<std::string_view> seen;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    for (std::string_view earlier : seen)
      if (earlier == name) return invalid(name, "is given twice");
    seen.push_back(name);
    if (name == "--remove-all") {
      options.mode = Mode::kRemoveAll;
      continue;
    }
    if (i + 1 == arguments.size()) return invalid(name, "needs a value");
    ATOLL_TRY_VOID(take(options, name, arguments[++i]));
  }
  if (options.state_dir.empty()) return invalid("--state-dir", "is missing");
  if (options.run_dir.empty()) return invalid("--run-dir", "is missing");
  if (options.mode == Mode::kRemoveAll) return options;
  if (options.agent.empty()) return invalid("--agent", "is missing");
  if (options.sudo.empty()) return invalid("--sudo", "is missing");
  if (options.notary.empty()) return invalid("--notary", "is missing");
  bool uid_given = false;
  for (std::string_view name : seen) uid_given |= name == "--client-uid";
  if (!uid_given) return invalid("--client-uid", "is missing");
  return options;
}

}  // namespace atl::warden
