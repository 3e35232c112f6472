#include "builder/options.h"

#include <charconv>

namespace atl::builder {
namespace {

Error invalid(std::string_view option, const char* what) {
  return Error(Code::kInvalid, std::string(option) + " " + what);
}

}  // namespace

Result<Options> parse_options(std::span<char* const> arguments) {
  Options options;
  bool has_uid = false;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    std::string_view name = arguments[i];
    if (i + 1 == arguments.size()) return invalid(name, "needs a value");
    std::string_view value = arguments[i + 1];
    if (name == "--client-uid") {
      auto [end, code] =
          std::from_chars(value.data(), value.data() + value.size(), options.client_uid);
      if (code != std::errc() || end != value.data() + value.size())
        return invalid(name, "is not a number");
      has_uid = true;
      continue;
    }
    if (name == "--npm-registry" || name == "--go-proxy") {
      (name == "--go-proxy" ? options.go_proxy : options.npm_registry) = value;
      continue;
    }
    std::string* path = name == "--state-dir" ? &options.state_dir
                        : name == "--run-dir" ? &options.run_dir
                        : name == "--out"     ? &options.out_dir
                                              : nullptr;
    if (path == nullptr) return invalid(name, "is not an option");
    if (!path->empty()) return invalid(name, "is given twice");
    if (!value.starts_with('/')) return invalid(name, "must be an absolute path");
    *path = value;
  }
  if (options.state_dir.empty()) return invalid("--state-dir", "is missing");
  if (!options.out_dir.empty()) return options;
  if (options.run_dir.empty()) return invalid("--run-dir", "is missing");
  if (!has_uid) return invalid("--client-uid", "is missing");
  return options;
}

}  // namespace atl::builder
