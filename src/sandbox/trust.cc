#include "sandbox/trust.h"

#include "egress/policy_json.h"
#include "egress/secret_text.h"
#include "sandbox/files.h"

namespace atl::sandbox {

namespace {

constexpr uint64_t kMaxTrustBytes = 4ull << 20;
constexpr uint32_t kTrustMode = 0644;
// OpenSSL and Python's ssl; Python's requests; curl; Node; git. Each has its own word for it.
constexpr const char* kTrustVariables[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
                                           "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"};

std::optional<egress::Policy> find_inspecting(const std::string& network) {
  auto policy = egress::parse_policy_json(network);
  if (!policy || !policy->inspects()) return std::nullopt;
  return std::move(*policy);
}

// What the image trusts by itself; nothing, if it has no such file.
Task<Result<std::string>> read_trusted(Files& files) {
  std::string path = kTrustFile;
  auto reader = co_await files.read(path, 0, kMaxTrustBytes);
  if (!reader && reader.error().reason() == "file_not_found") co_return std::string();
  if (!reader) co_return std::move(reader).error();
  if ((*reader)->entry().size > kMaxTrustBytes)
    co_return Error(Code::kInvalid, path + " is larger than 4 MiB").with_reason("trust_failed");
  std::string text;
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await (*reader)->next());
    if (bytes.empty()) co_return text;
    text += bytes;
  }
}

Task<Result<void>> write_text(Files& files, const char* path, std::string text) {
  WriteFile request{.path = path, .mode = kTrustMode};
  ATOLL_CO_TRY(std::unique_ptr<FileWriter> writer, co_await files.write(request));
  ATOLL_CO_TRY_VOID(co_await writer->write(text));
  ATOLL_CO_TRY_VOID(co_await writer->finish());
  co_return Result<void>();
}

}  // namespace

std::string environment_of(const store::SandboxRow& row) {
  auto policy = find_inspecting(row.network);
  if (!policy) return row.environment;
  std::vector<std::pair<std::string, std::string>> more;
  for (const char* name : kTrustVariables) more.emplace_back(name, kTrustFile);
  for (const egress::SecretUse& use : policy->secrets) more.emplace_back(use.name, use.placeholder);
  return egress::add_variables(row.environment, more);
}

Task<Result<void>> install_trust(Services& services, std::shared_ptr<Sandbox> sandbox) {
  if (!find_inspecting(sandbox->row().network)) co_return Result<void>();
  isolate::EgressCall call{.operation = egress::kShowAuthority, .sandbox = sandbox->id()};
  ATOLL_CO_TRY(std::string authority, co_await services.driver.call_egress(std::move(call)));
  Files files(sandbox, "root");
  ATOLL_CO_TRY(std::string trusted, co_await read_trusted(files));
  if (trusted.find(authority) != trusted.npos) co_return Result<void>();
  if (!trusted.empty() && !trusted.ends_with('\n')) trusted += '\n';
  trusted += authority;
  ATOLL_CO_TRY_VOID(co_await write_text(files, kTrustFile, std::move(trusted)));
  // For who makes the other file anew (update-ca-certificates).
  co_return co_await write_text(files, kAuthorityFile, std::move(authority));
}

}  // namespace atl::sandbox
