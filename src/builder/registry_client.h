// GET from one repository of a registry, with what its authentication asks for: none, Basic, or a
// bearer token from the service that it names. libcurl is known in the .cc only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "builder/registry.h"

namespace atl::builder {

class RegistryClient {
 public:
  static Result<RegistryClient> create(const ImageReference& reference, int credentials);
  RegistryClient(RegistryClient&&) noexcept;
  ~RegistryClient();

  using Take = std::function<Result<void>(std::string_view part)>;
  // `path` is beneath the repository, e.g. "/manifests/latest". Nothing is taken of an answer that
  // is not 200.
  Result<void> get(const std::string& path, const std::vector<std::string>& headers,
                   const Take& take);

 private:
  struct Transfer;
  struct Curl;
  RegistryClient();
  Result<void> perform(Transfer& transfer);
  Result<void> sign_in(const std::string& challenge);

  std::unique_ptr<Curl> curl_;
  std::string base_;  // "https://host/v2/repository"
  std::string repository_;
  std::string basic_;          // user:password in base 64; empty: none
  std::string authorization_;  // the header that worked
};

// The fields of a WWW-Authenticate header: `Bearer realm="…",service="…"`.
std::string challenge_field(std::string_view challenge, std::string_view name);

// "auth" of a host in the text of Docker's config.json; empty if it is not there.
Result<std::string> find_credentials(std::string_view text, const std::string& host);

}  // namespace atl::builder
