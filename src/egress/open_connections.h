// OpenConnections: those of one sandbox, which are borrowed: each enters and leaves by itself.
//
// One thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/clock.h"
#include "egress/descriptors.h"

namespace atl::egress {

inline constexpr size_t kMaxConnections = 2048;  // of one sandbox

// A connection that can be cut.
class OpenConnection {
 public:
  virtual ~OpenConnection() = default;
  // Asks again, after the policy has changed.
  virtual bool is_still_allowed() = 0;
  virtual void cut(const std::string& reason) = 0;
  // It is not allowed any more: what was taken and has not left yet does not.
  virtual void revoke() = 0;
  // When something of it last went on.
  virtual SteadyTime last_used() const = 0;

  Descriptors::Share descriptors;
};

class OpenConnections {
 public:
  explicit OpenConnections(Descriptors& descriptors) : descriptors_(descriptors) {}

  uint64_t next_number() { return ++seen_; }
  // False: there are too many, of the sandbox, of its tenant or of all.
  bool enter(OpenConnection* connection, uint64_t tenant);
  void leave(OpenConnection* connection) { open_.erase(connection); }

  void revoke_denied();
  void cut_all(const std::string& reason);
  // Those that have said nothing for long. How many.
  size_t end_idle(SteadyTime now, uint64_t tenant);

 private:
  Descriptors& descriptors_;
  std::set<OpenConnection*> open_;
  uint64_t seen_ = 0;
};

}  // namespace atl::egress
