// PendingChanges: what atolld has said goes before whatever of a sandbox is ready at the same time.
// Whoever is about to let something pass applies them first, so that no byte is passed under a
// policy that a message which was there before it takes away; also after this process stood still.
//
// One thread. Applying may close the connection of the caller, who looks at it again.
#pragma once

#include <functional>
#include <utility>

namespace atl::egress {

class PendingChanges {
 public:
  void set_source(std::function<void()> apply) { apply_ = std::move(apply); }
  void apply() const {
    if (apply_) apply_();
  }

 private:
  std::function<void()> apply_;
};

}  // namespace atl::egress
