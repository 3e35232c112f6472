// Control: what a keeper tells its sentry, and what that answers. The sentry has one such
// connection for its life; its answers are hostile text, of which nothing is used but whether it
// says that it was done.
#pragma once

#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::gvisor {

class Control {
 public:
  // To the sentry that listens at this name in the directory.
  static Result<Control> connect(int directory, const char* name);

  // Until it is answered. The descriptors are lent with it.
  Result<void> call(const std::string& text, std::span<const int> fds = {});

 private:
  explicit Control(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

}  // namespace atl::gvisor
