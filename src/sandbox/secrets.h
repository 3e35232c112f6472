// Secrets: those of one tenant, which egress keeps. A value passes through here on its way there
// and is stored nowhere else.
#pragma once

#include <map>
#include <string>

#include "egress/secret.h"
#include "isolate/driver.h"
#include "isolate/task.h"
#include "store/tenant.h"

namespace atl::sandbox {

class Secrets {
 public:
  Secrets(isolate::Driver& driver, store::TenantId tenant) : driver_(driver), tenant_(tenant) {}

  // Whether it is a new one. kExhausted with reason too_many_secrets.
  Task<Result<bool>> put(egress::Secret secret);
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
