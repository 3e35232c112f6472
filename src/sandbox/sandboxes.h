// Sandboxes: all that exist, by id. Creates, finds and deletes them, takes them up again after a
// restart, ends those whose time is up, and frees what a failed one held.
//
// Every call names a tenant, and another tenant's sandbox does not exist for it. One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "store/templates.h"

namespace atl::sandbox {

// A checked request; absent limits come from the template.
struct CreateSandbox {
  std::string template_name;
  std::optional<uint32_t> cpu_millis;
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> pids;
  std::optional<uint64_t> disk_bytes;
  std::optional<uint64_t> output_bytes;
  std::optional<uint32_t> open_files;
  std::optional<uint64_t> disk_bytes_per_second;
  std::optional<uint32_t> cpu_time_ms;
  isolate::OnOom on_oom = isolate::OnOom::kEndExec;
  uint32_t required_extras = 0;  // bits of isolate::Extra
  std::optional<uint64_t> ttl_ms;
  std::optional<uint64_t> idle_ttl_ms;
  std::string metadata = "{}";     // JSON object of strings
  std::string environment = "{}";  // JSON object of strings
};

// How long each part of a create took.
struct CreateTimings {
  std::chrono::microseconds reserve, launch, attach;
};

struct Created {
  std::shared_ptr<Sandbox> sandbox;
  CreateTimings timings;
};

class Sandboxes {
 public:
  Sandboxes(Services services, Admission& admission, store::Templates& templates);

  Task<Result<Created>> create(store::TenantId tenant, CreateSandbox request);
  std::shared_ptr<Sandbox> find(store::TenantId tenant, SandboxId id) const;
  Task<Result<void>> remove(store::TenantId tenant, SandboxId id);
  // Oldest first, after the given one.
  Task<Result<std::vector<store::SandboxRow>>> list(store::TenantId tenant,
                                                    std::optional<store::SandboxCursor> after,
                                                    size_t limit);

  // At start: rows and isolates are compared, what fits is taken up, the rest is cleaned away.
  // After an error it is called again and goes on where it was.
  Task<Result<void>> adopt();
  // Ends what is due and retries what could not be freed.
  Task<void> sweep();
  // Sleeps until there may be something to sweep.
  Task<void> wait_due();
  // When that is, unless a sandbox is created, is touched or fails first.
  SteadyTime next_due() const;

  Services& services() { return services_; }
  store::Templates& templates() { return templates_; }
  size_t size() const { return all_.size(); }

 private:
  Task<Result<void>> start(std::shared_ptr<Sandbox> sandbox, CreateTimings& timings);
  Task<Result<void>> free_isolate(std::shared_ptr<Sandbox> sandbox);
  // Leaves what it could not finish to the sweep.
  Task<Result<void>> delete_now(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> try_delete(std::shared_ptr<Sandbox> sandbox);
  Task<void> keep_artifacts_once(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> adopt_row(store::SandboxRow row, bool isolate_exists);
  Result<store::SandboxRow> make_row(store::TenantId tenant, const CreateSandbox& request) const;

  Services services_;
  Admission& admission_;
  store::Templates& templates_;
  std::map<SandboxId, std::shared_ptr<Sandbox>> all_;
  std::set<SandboxId> keeping_;  // whose artifacts are being collected
  SteadyTime artifacts_swept_{};
  SteadyTime wake_ = SteadyTime::max();  // when wait_due() returns, if it waits
  Event due_;
  Event kept_;
};

}  // namespace atl::sandbox
