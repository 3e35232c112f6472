// Secrets: those of one tenant, which egress keeps. A value passes through here on its way there
// and is stored nowhere else.
#pragma once

#include <map>
#include <string>

#include "async/task.h"
#include "egress/put_secret.h"
#include "egress/secret.h"
#include "isolate/driver.h"
#include "store/tenant.h"

namespace atl::sandbox {

class Secrets {
 public:
  Secrets(isolate::Driver& driver, store::TenantId tenant) : driver_(driver), tenant_(tenant) {}

  struct Put {
    bool is_new = false;
    std::string shown = {};  // as JSON without its value
  };
  // kExhausted with reason too_many_secrets; kConflict: it is there, and was to be absent.
  using When = egress::PutSecret::When;
  Task<Result<Put>> put(egress::Secret secret, When when = When::kAlways);
  // Another value; nothing for `metadata`: it keeps its own. As JSON. kNotFound: there is none.
  using Metadata = std::optional<std::map<std::string, std::string>>;
  Task<Result<std::string>> renew(std::string name, std::string value, Metadata metadata);
  // kNotFound: there is none.
  Task<Result<void>> remove(std::string name);
  // Each as JSON without its value, by name.
  Task<Result<std::map<std::string, std::string>>> list();

  // That there is every secret that a policy (network_text()) uses. kInvalid with reason
  // secret_not_found.
  Task<Result<void>> check(std::string network);

 private:
  Task<Result<std::string>> call(egress::Operation operation, std::string text);

  isolate::Driver& driver_;
  store::TenantId tenant_;
};

}  // namespace atl::sandbox
