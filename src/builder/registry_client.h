// GET from one repository of a registry, with what its authentication asks for: none, Basic, or a
// bearer token from the service that it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "builder/http_get.h"
#include "builder/registry.h"

namespace atl::builder {

class RegistryClient {
 public:
  static Result<RegistryClient> create(const ImageReference& reference, int credentials);

  // `path` is beneath the repository, e.g. "/manifests/latest".
  Result<void> get(const std::string& path, const std::vector<std::string>& headers,
                   const TakePart& take);

 private:
  RegistryClient() = default;
  Result<void> sign_in(const std::string& challenge);
  Result<void> fetch_token(const std::string& url);

  std::string base_;  // "https://host/v2/repository"
  std::string repository_;
  std::string basic_;          // user:password in base 64; empty: none
  std::string authorization_;  // what the registry accepted
};

// A field of a WWW-Authenticate header: `Bearer realm="…",service="…"`.
std::string challenge_field(std::string_view challenge, std::string_view name);

// "auth" of a host in the text of Docker's config.json; empty if it is not there.
Result<std::string> find_credentials(std::string_view text, const std::string& host);

}  // namespace atl::builder
