#include "cli/tls_options.h"

#include <fcntl.h>

#include <filesystem>

#include "base/file.h"
#include "cli/listen_address.h"
#include "cli/run_as.h"
#include "cli/state_directory.h"

namespace atl::cli {
namespace {

Error unreadable(const std::string& file, const Error& error) {
  std::string remedy = "name a file that is there";
  if (error.code() == Code::kDenied)
    remedy = std::string("chgrp ") + kDaemonUser + " " + file + " && chmod g+r " + file +
             ", and let that group pass the folders above it (chmod g+x)";
  return Error(error.code(), std::string("TLS: user ") + kDaemonUser + " cannot " +
                                 error.message() + "\n  remedy: " + remedy);
}

}  // namespace

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

Result<void> TlsOptions::check_readable(const Identity& daemon) const {
  for (const std::string& file : {certificate, key}) {
    if (file.empty()) continue;
    auto opened = run_as(daemon, [&]() -> Result<std::string> {
      ATOLL_TRY(Fd fd, open_file(file, O_RDONLY));
      return std::string();
    });
    if (!opened) return unreadable(file, opened.error());
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
