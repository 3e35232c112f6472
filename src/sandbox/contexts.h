// Contexts: those of one sandbox, by id. One thread; a part of the sandbox.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/context.h"
#include "sandbox/limits.h"

namespace atl::sandbox {

inline constexpr size_t kMaxContexts = 16;

struct ContextRequest {
  std::string language;                  // as context_language() gives it
  std::string directory = {};            // empty: the user's home
  std::vector<std::string> environment;  // NAME=value, all of it
  std::string description = {};          // JSON: what its exec is shown as
  std::optional<store::IdempotencyKey> idempotency_key = {};
};

class Contexts {
 public:
  Contexts(Services& services, ExecTable& execs, const store::SandboxRow& row);

  // Returns when the interpreter waits for code. kUnavailable with reason language_unavailable: it
  // does not start in this sandbox, and there is no such context.
  Task<Result<std::shared_ptr<Context>>> create(std::shared_ptr<void> sandbox,
                                                ContextRequest request, const Limits& limits);
  std::shared_ptr<Context> find(ContextId id) const;
  // In the order of their creation.
  const std::vector<std::shared_ptr<Context>>& all() const { return all_; }
  // Open or ended, with what it printed; null if there is none.
  Task<Result<std::shared_ptr<ContextRun>>> find_run(std::shared_ptr<Context> context,
                                                     uint32_t number);
  Task<Result<void>> remove(std::shared_ptr<Context> context);

  // After a restart: reads the rows, says which execs are interpreters, and takes them up once
  // those are in the table.
  Task<Result<void>> adopt();
  ExecKind kind_of(ExecId exec) const;
  void take_up(std::weak_ptr<void> sandbox, const Limits& limits, int64_t now_ms);

  // A run is under way or waits, or somebody waits for an interpreter.
  bool are_busy() const;
  SteadyTime last_end() const;

  // As of a Context.
  void hold();
  void go_on(uint64_t frozen_ms);
  // The sandbox has ended.
  void end_all(Verdict verdict = Verdict::kSandboxGone);

 private:
  struct Adopted {
    store::ContextRow row;
    std::vector<store::RunRow> open_runs;
  };

  void tend(std::shared_ptr<Context> context);

  Services& services_;
  ExecTable& execs_;
  SandboxId sandbox_;
  store::TenantId tenant_;
  std::vector<std::shared_ptr<Context>> all_;  // each shared with its task
  size_t being_made_ = 0;
  std::vector<Adopted> adopted_;
};

}  // namespace atl::sandbox
