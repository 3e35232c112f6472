// Mark: while it lives, an id is among others; those who wait for it to go are told.
#pragma once

#include <set>

#include "base/ids.h"
#include "isolate/event.h"

namespace atl::sandbox {

class Mark {
 public:
  Mark(std::set<SandboxId>& ids, SandboxId id, Event& gone) : ids_(ids), id_(id), gone_(gone) {
    ids_.insert(id_);
  }
  ~Mark() {
    ids_.erase(id_);
    gone_.notify_all();
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  std::set<SandboxId>& ids_;
  SandboxId id_;
  Event& gone_;
};

}  // namespace atl::sandbox
