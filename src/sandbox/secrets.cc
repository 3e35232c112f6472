#include "sandbox/secrets.h"

#include "egress/policy_json.h"
#include "egress/secret_text.h"

namespace atl::sandbox {

Task<Result<std::string>> Secrets::call(egress::Operation operation, std::string text) {
  isolate::EgressCall asked{.operation = operation};
  asked.tenant = static_cast<uint64_t>(tenant_.number());
  asked.text = std::move(text);
  auto answer = co_await driver_.call_egress(std::move(asked));
  co_return answer;
}

Task<Result<Secrets::Put>> Secrets::put(egress::Secret secret, When when) {
  ATOLL_CO_TRY(auto known, co_await list());
  bool is_new = !known.contains(secret.name);
  if (is_new && known.size() >= egress::kMaxSecretsOfTenant)
    co_return Error(Code::kExhausted, "there are 64 secrets").with_reason("too_many_secrets");
  std::string text = egress::put_secret_text(secret, when);
  ATOLL_CO_TRY(std::string shown, co_await call(egress::kPutSecret, std::move(text)));
  co_return Put{is_new, std::move(shown)};
}

Task<Result<std::string>> Secrets::renew(std::string name, std::string value, Metadata metadata) {
  std::string text = egress::renew_secret_text(name, value, metadata);
  auto shown = co_await call(egress::kPutSecret, std::move(text));
  co_return shown;
}

Task<Result<void>> Secrets::remove(std::string name) {
  ATOLL_CO_TRY_VOID(co_await call(egress::kRemoveSecret, std::move(name)));
  co_return Result<void>();
}

Task<Result<std::map<std::string, std::string>>> Secrets::list() {
  std::string nothing;
  ATOLL_CO_TRY(std::string lines, co_await call(egress::kListSecrets, std::move(nothing)));
  std::map<std::string, std::string> shown;
  size_t start = 0;
  for (size_t end = lines.find('\n'); end != lines.npos; end = lines.find('\n', start)) {
    std::string line = lines.substr(start, end - start);
    start = end + 1;
    auto name = egress::name_of_shown(line);
    if (!name)
      co_return Error(Code::kUnavailable, "egress: a list of secrets that is none")
          .with_reason("egress_unavailable");
    shown.emplace(std::move(*name), std::move(line));
  }
  co_return shown;
}

Task<Result<void>> Secrets::check(std::string network) {
  auto policy = egress::parse_policy_json(network);
  if (!policy) co_return std::move(policy).error();
  std::map<std::string, std::string> needed;  // the field of each
  for (const egress::SecretUse& use : policy->secrets) needed[use.name] = "network.secrets";
  if (policy->upstream && !policy->upstream->credentials.empty())
    needed[policy->upstream->credentials] = "network.upstream.credentials";
  for (std::string& name : egress::secrets_of(policy->set_headers))
    needed[std::move(name)] = "network.set_headers";
  if (needed.empty()) co_return Result<void>();
  ATOLL_CO_TRY(auto known, co_await list());
  for (const auto& [name, field] : needed)
    if (!known.contains(name))
      co_return Error(Code::kInvalid, "there is no secret " + name)
          .with_reason("secret_not_found")
          .with_field(field);
  co_return Result<void>();
}

}  // namespace atl::sandbox
