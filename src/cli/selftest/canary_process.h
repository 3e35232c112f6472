// CanaryProcess: a process of the host that holds a secret in its memory and nowhere else that a
// victim could read by right. It must stay alive, keep its secret, and no victim may print that.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli::selftest {

class CanaryProcess {
 public:
  static constexpr const char* kName = "atoll-canary";

  // Forks: call it before there are threads.
  static Result<CanaryProcess> start();
  CanaryProcess(CanaryProcess&&) = default;
  CanaryProcess& operator=(CanaryProcess&&) = default;
  ~CanaryProcess();

  pid_t pid() const { return pid_; }
  const std::string& secret() const { return secret_; }
  // What is wrong with it, if anything.
  std::optional<std::string> find_harm() const;

 private:
  CanaryProcess() = default;

  pid_t pid_ = -1;
  Fd pidfd_;
  Fd socket_;
  std::string secret_;
};

}  // namespace atl::cli::selftest
