// Sandboxes: all that exist, by id. Creates, finds and deletes them, takes them up again after a
// restart, ends those whose time is up, and frees what a failed one held.
//
// Every call names a tenant, and another tenant's sandbox does not exist for it. A name belongs to
// one sandbox of its tenant from the moment its create is accepted until its deletion is stored;
// the unique index of the rows holds the same. One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sandbox/create_sandbox.h"
#include "sandbox/sandbox.h"
#include "sandbox/sandbox_change.h"
#include "sandbox/templates.h"
#include "sandbox/warm_pool.h"

namespace atl::sandbox {

// Why execs of a sandbox end whose memory is given back.
inline constexpr char kMemoryGivenBack[] = "its memory was given back while it was paused";

// How long each part of a create took.
struct CreateTimings {
  std::chrono::microseconds reserve, launch, attach;
  bool from_pool = false;
  bool from_zygote = false;  // an interpreter waits that was copied, not started
};

struct Created {
  std::shared_ptr<Sandbox> sandbox;
  CreateTimings timings = {};
  enum class Origin : unsigned char { kMade, kFound } origin = Origin::kMade;
};

class Sandboxes {
 public:
  Sandboxes(Services services, Admission& admission, Templates& templates);

  Task<Result<Created>> create(store::TenantId tenant, CreateSandbox request);
  std::shared_ptr<Sandbox> find(store::TenantId tenant, SandboxId id) const;
  std::shared_ptr<Sandbox> find_named(store::TenantId tenant, const std::string& name) const;
  // One change of a sandbox at a time; others wait for it.
  Task<Result<void>> change(std::shared_ptr<Sandbox> sandbox, ChangeSandbox request);
  Task<Result<void>> remove(store::TenantId tenant, SandboxId id);
  // Returns when its artifacts are kept and nobody finds it any more; the rest goes on by itself.
  // After a crash before the deletion is stored, the next start finds it running, until its ttl.
  Task<void> retire(std::shared_ptr<Sandbox> sandbox);
  Task<Result<std::vector<store::SandboxRow>>> list(store::TenantId tenant,
                                                    store::SandboxQuery wanted);

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
  Templates& templates() { return templates_; }
  WarmPool& pool() { return pool_; }
  // Every one, also those that no call finds any more.
  const std::map<SandboxId, std::shared_ptr<Sandbox>>& all() const { return all_; }

 private:
  friend class Snapshots;  // rolls back
  using Name = std::pair<store::TenantId, std::string>;

  // Ends `old` and makes it anew as `row`, which is stored and says so, under the same id.
  Task<Result<std::shared_ptr<Sandbox>>> remake(std::shared_ptr<Sandbox> old,
                                                store::SandboxRow row);
  Task<Result<Created>> make(store::TenantId tenant, CreateSandbox request);
  // Has the request ask for the singleton of its template, if that has one.
  Result<void> ask_for_singleton(store::TenantId tenant, CreateSandbox& request) const;
  // What has the name that is asked for, once it is no longer being made; null: it is free.
  Task<Result<std::shared_ptr<Sandbox>>> find_conflict(store::TenantId tenant,
                                                       const CreateSandbox& request);
  void enter(std::shared_ptr<Sandbox> sandbox);
  void free_name(const Sandbox& sandbox);
  Task<Result<void>> start(std::shared_ptr<Sandbox> sandbox, CreateTimings& timings);
  // The same with an isolate of the pool.
  Task<Result<void>> start(std::shared_ptr<Sandbox> sandbox, WarmIsolate isolate,
                           CreateTimings& timings);
  // From a row that is marked as restoring to a sandbox that runs. After an error it has failed.
  Task<Result<void>> restore(std::shared_ptr<Sandbox> sandbox);
  // A persistent sandbox whose isolate went with the machine gets another, with its files.
  Task<Result<void>> renew_row(store::SandboxRow& row);
  Task<void> come_back(std::shared_ptr<Sandbox> sandbox);
  // Why the memory of a paused sandbox is given back: its time has come, or others need it.
  enum class Need : unsigned char { kTime, kPressure };
  bool may_release(const Sandbox& sandbox, Need need) const;
  // Does that, or goes on with it: its isolate ends, its files stay.
  Task<Result<void>> release(std::shared_ptr<Sandbox> sandbox, Need need);
  // Of those whose memory may be given back to others. Null: there is none.
  std::shared_ptr<Sandbox> longest_paused() const;
  Task<Result<void>> release_longest_paused();
  // For a sandbox that the host could not promise that much; false: there is no room to be made.
  Task<bool> make_room(Limits limits, Admission::Place place);
  // Until the host has memory again, or nobody is left.
  Task<void> relieve();
  // In the turn of the sandbox, all three. Ends `old`; what has its id then is paused.
  Task<Result<void>> lay_down(std::shared_ptr<Sandbox> old, store::SandboxRow row);
  Task<Result<void>> finish_release(std::shared_ptr<Sandbox> sandbox);
  // Whose memory it may need: also that of others who allow it, or what waits in the pool alone.
  enum class Room : unsigned char { kOfOthers, kOfPool };
  Task<Result<void>> bring_back(std::shared_ptr<Sandbox> sandbox, Room room);
  // Of one whose row says that its memory was given back, which stands still from here on.
  void take_up_released(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> promise_again(std::shared_ptr<Sandbox> sandbox, Room room);
  Task<Result<void>> wake(std::shared_ptr<Sandbox> sandbox);
  // What its template starts in it.
  Task<Result<void>> start_asked(std::shared_ptr<Sandbox> sandbox, store::StartProgram wanted);
  Task<Result<void>> store_running(std::shared_ptr<Sandbox> sandbox);
  Result<void> set_running(Sandbox& sandbox);
  // The row is the caller's until it returns.
  Task<Result<Reservation>> reserve(const store::SandboxRow& row, std::optional<WarmIsolate>& warm);
  Task<Result<void>> free_isolate(std::shared_ptr<Sandbox> sandbox);
  // Leaves what it could not finish to the sweep.
  Task<Result<void>> delete_now(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> try_delete(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> begin_delete(std::shared_ptr<Sandbox> sandbox);
  // Of one that has only its files, unless it may have left artifacts: then it runs.
  Task<Result<void>> begin_delete_at_rest(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> end_delete(std::shared_ptr<Sandbox> sandbox);
  Task<void> keep_artifacts_once(std::shared_ptr<Sandbox> sandbox);
  Task<Result<void>> adopt_row(store::SandboxRow row, bool isolate_exists);
  // A row, and what the template starts in the sandbox that it is of.
  struct Draft {
    store::SandboxRow row;
    std::optional<store::StartProgram> start = {};
  };
  Result<Draft> make_draft(store::TenantId tenant, const CreateSandbox& request,
                           const std::optional<store::SnapshotRow>& snapshot) const;

  Services services_;
  Admission& admission_;
  Templates& templates_;
  WarmPool pool_;
  Volumes volumes_;
  std::map<SandboxId, std::shared_ptr<Sandbox>> all_;
  std::map<Name, SandboxId> names_;
  SteadyTime wake_ = SteadyTime::max();  // when wait_due() returns, if it waits
  Event due_;
  std::set<SandboxId> retired_;  // and not yet gone
  std::set<SandboxId> starting_;
  // Whose create waits for what the template starts. Their rows say `creating` until it is ready:
  // nobody was told of them, so the next start removes them.
  std::set<SandboxId> unanswered_;
  Event settled_;                // a create or a deletion's first part came to its end
  std::set<SandboxId> keeping_;  // whose artifacts are being collected
  SteadyTime artifacts_swept_{};
  Event kept_;
};

}  // namespace atl::sandbox
