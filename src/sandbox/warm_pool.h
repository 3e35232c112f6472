// WarmPool: isolates that are up before anybody asks for them, so that a create takes one and waits
// for nothing. Each is launched with its template's limits, its agent is greeted, and where the
// template's language allows it an interpreter waits inside. A sandbox is never put back.
//
// How many are kept: at least the template's [pool] warm, and as many more as were lately taken at
// once, up to its [pool] max. They count against the host's budget, with what they use and not with
// what their limits allow, and make room when a sandbox needs it or the host runs short of memory.
// No row knows them: after a restart of atolld they are removed like any isolate without a row. One
// thread.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/admission.h"
#include "sandbox/demand.h"
#include "sandbox/laid_down.h"
#include "sandbox/templates.h"
#include "sandbox/warm_isolate.h"
#include "sandbox/zygotes.h"

namespace atl::sandbox {

// What a sandbox of this row is to stand on.
Basis basis_of(Templates& templates, const store::SandboxRow& row);

// What the pool has done, for whoever watches it.
struct WarmCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;    // of templates that have a pool
  uint64_t launches = 0;  // that succeeded
  uint64_t failures = 0;
  uint64_t launch_us = 0;  // of all launches together
};

class WarmPool {
 public:
  WarmPool(Services& services, Admission& admission, Templates& templates);

  // One that can become a sandbox of this row, whose limits may still have to be changed.
  // One with a kernel of its own rests until it is asked for something, or is poised.
  std::optional<WarmIsolate> take(const store::SandboxRow& row);
  // Has a poised one begin; after an error it is gone.
  Task<Result<void>> begin(WarmIsolate& isolate);
  // Gives up the isolate that has waited longest, to make room; false if there is none.
  Task<bool> give_up_one();
  // For a sandbox that is made anew: greets its agent and starts there what waits in isolates of
  // the pool, if that can be copied, which takes no time to speak of. Nothing: it cannot.
  Task<std::optional<WarmAgent>> copy(store::SandboxRow row, Basis basis);
  // The same for a machine: launches it, too. Nothing: it is still to be launched.
  Task<std::optional<WarmAgent>> restore(std::string name, isolate::LaunchSpec spec);
  // Removes an isolate that was taken and not used.
  Task<void> discard(WarmIsolate isolate);

  // Fills the pools and lets them shrink, for the life of this process. Machines apart, because
  // each takes seconds to boot.
  enum class Walls : unsigned char { kJails, kMachines };
  Task<void> run(Walls walls);

  const WarmCounts& counts() const { return counts_; }
  const Zygotes& zygotes() const { return zygotes_; }
  size_t size() const;
  std::vector<Digest> images() const;

 private:
  struct Pool {
    size_t floor = 0;
    size_t ceiling = 0;
    std::optional<Basis> basis;
    std::optional<agent::Start> program;  // that waits
    std::deque<WarmIsolate> ready;        // the oldest first
    // That machines begin with; shared with those that are just beginning.
    std::shared_ptr<LaidDown> laid_down;
    std::optional<WarmIsolate> poised;  // for who finds none of the others
    Demand demand;
    SteadyTime not_before{};  // after a failure
  };

  Result<void> find_templates();
  size_t wanted(Pool& pool) const;
  // One that nobody wants: there are too many, or its template has another image by now.
  std::optional<WarmIsolate> take_spare(Pool& pool);
  // One step for this template; false when there is nothing to do.
  Task<bool> tend(std::string name);
  enum class Program : unsigned char { kOfZygote, kCopied };
  Task<Result<WarmIsolate>> launch(std::string name, Program program);
  Task<Result<WarmAgent>> start_anew(std::string name, isolate::LaunchSpec spec, Program program);
  Task<void> make_zygote(std::string name, Basis basis);
  Task<Result<LaidDown>> make_laid_down(std::string name);
  // Whether something was done about it.
  Task<bool> tend_laid_down(std::string name);
  Task<void> drop_laid_down(std::string name);
  Task<bool> tend_poised(std::string name);
  Task<bool> drop_poised(Pool& pool);
  // Those that follow boot, until another is laid down.
  Task<void> mistrust(std::string name, std::shared_ptr<LaidDown> lender, Error why);
  Task<void> remove(SandboxId id);

  Services& services_;
  Admission& admission_;
  Templates& templates_;
  std::map<std::string, Pool, std::less<>> pools_;
  Zygotes zygotes_;
  Event changed_;
  bool memory_is_short_ = false;
  WarmCounts counts_;
};

}  // namespace atl::sandbox
