#include "egress/open_connections.h"

#include <chrono>
#include <vector>

namespace atl::egress {
namespace {

constexpr std::chrono::hours kIdleTime{1};
// Where the tenant has many.
constexpr std::chrono::minutes kShortIdleTime{1};

}  // namespace

bool OpenConnections::enter(OpenConnection* connection, uint64_t tenant) {
  if (open_.size() >= kMaxConnections) return false;
  if (!connection->descriptors.grow(descriptors_, tenant, Descriptors::kOfConnection)) return false;
  open_.insert(connection);
  return true;
}

void OpenConnections::revoke_denied() {
  std::vector<OpenConnection*> denied;
  for (OpenConnection* connection : open_)
    if (!connection->is_still_allowed()) denied.push_back(connection);
  for (OpenConnection* connection : denied) connection->revoke();
}

void OpenConnections::cut_all(const std::string& reason) {
  std::set<OpenConnection*> open = open_;
  for (OpenConnection* connection : open) connection->cut(reason);
}

size_t OpenConnections::end_idle(SteadyTime now, uint64_t tenant) {
  SteadyTime::duration most = kIdleTime;
  if (descriptors_.is_short_of(tenant)) most = kShortIdleTime;
  std::vector<OpenConnection*> idle;
  for (OpenConnection* connection : open_)
    if (now - connection->last_used() > most) idle.push_back(connection);
  for (OpenConnection* connection : idle) connection->cut("idle");
  return idle.size();
}

}  // namespace atl::egress
