// An isolate that is up and has no user yet.
#pragma once

#include <memory>

#include "isolate/driver.h"
#include "sandbox/admission.h"
#include "sandbox/sandbox.h"
#include "sandbox/zygotes.h"

namespace atl::sandbox {

struct LaidDown;

struct WarmIsolate {
  SandboxId id;
  Basis basis;
  isolate::Nonce nonce = {};
  isolate::WallLimits limits = {};
  Reservation reservation = {};
  WarmAgent agent = {};
  // It is *poised*: it holds the memory of this one, and begins with it when it is told to.
  std::shared_ptr<LaidDown> lender = nullptr;
};

}  // namespace atl::sandbox
