#include "egress/options.h"

#include <charconv>
#include <map>

namespace atl::egress {
namespace {

Error invalid_option(std::string message) { return Error(Code::kInvalid, std::move(message)); }

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::string uid;
  const std::map<std::string, std::string*> known = {{"--state-dir", &options.state_directory},
                                                     {"--run-dir", &options.run_directory},
                                                     {"--client-uid", &uid},
                                                     {"--ceiling", &options.ceiling},
                                                     {"--upstream", &options.upstream},
                                                     {"--retention", &options.retention},
                                                     {"--resolvers", &options.resolvers},
                                                     {"--authorities", &options.authorities}};
  for (size_t i = 0; i < arguments.size(); i += 2) {
    auto found = known.find(arguments[i]);
    if (found == known.end()) return invalid_option("unknown option '" + arguments[i] + "'");
    if (i + 1 == arguments.size()) return invalid_option(arguments[i] + " needs a value");
    *found->second = arguments[i + 1];
  }
  if (options.state_directory.empty() || options.run_directory.empty() || uid.empty())
    return invalid_option("--state-dir, --run-dir and --client-uid are required");
  auto [end, error] = std::from_chars(uid.data(), uid.data() + uid.size(), options.client_uid);
  if (error != std::errc() || end != uid.data() + uid.size() || options.client_uid == 0)
    return invalid_option("--client-uid: '" + uid + "' is not the id of a user");
  return options;
}

}  // namespace atl::egress
