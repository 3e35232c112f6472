#include "cli/tls_options.h"

#include <filesystem>

#include "cli/listen_address.h"

namespace atl::cli {

Result<void> TlsOptions::settle(Reach reach) {
  bool some = !listen.empty() || !certificate.empty() || !key.empty();
  bool all = !listen.empty() && !certificate.empty() && !key.empty();
  if (some != all)
    return Error(Code::kInvalid, "--tls-listen, --tls-certificate and --tls-key belong together");
  if (!some) return {};
  ATOLL_TRY(ListenAddress address, ListenAddress::parse(listen));
  if (!address.is_loopback() && reach == Reach::kLoopbackOnly)
    return Error(Code::kInvalid,
                 "other hosts could reach " + listen + ": add --allow-remote if that is meant");
  for (std::string* file : {&certificate, &key}) {
    std::error_code error;
    *file = std::filesystem::absolute(*file, error).string();
    if (error) return Error(Code::kInvalid, "find " + *file + ": " + error.message());
  }
  return {};
}

void TlsOptions::append_to(std::vector<std::string>& arguments) const {
  auto append = [&](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  append("--domain", domain);
  append("--tls-listen", listen);
  append("--tls-certificate", certificate);
  append("--tls-key", key);
}

}  // namespace atl::cli
