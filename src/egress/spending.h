// Spending: what one sandbox has used of the budgets in its policy. The counts are in a file that
// is mapped, so that they outlive this process: a sandbox does not get its budget again because
// egress was started again. A sandbox without budgets has no file and is not counted.
//
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "egress/policy.h"

namespace atl::egress {

enum class Flow : unsigned char { kOut, kIn };

class Spending {
 public:
  // `directory` must stay open.
  static Result<Spending> open(int directory, SandboxId id, const Policy& policy);
  static Result<void> remove(int directory, SandboxId id);
  Spending(Spending&&) = default;
  Spending& operator=(Spending&&) = default;

  // Another policy. A rule that is about the same destinations goes on with its count; one that is
  // not in the policy any more is forgotten.
  Result<void> change(const Policy& policy);

  // By a connection that the rule allows. Nothing is counted when it is refused: kDenied with
  // reason budget_…, and as its field whose budget it is, "rules[0].budget" or "budget".
  Result<void> begin_connection(size_t rule);
  Result<void> take_requests(size_t rule, uint64_t count, SteadyTime now);
  // How many bytes may still go that way.
  uint64_t left(size_t rule, Flow flow) const;
  void spend(size_t rule, Flow flow, uint64_t bytes);
  // Why no more than that is left.
  Error overdraft(size_t rule, Flow flow) const;

 private:
  // As it is in the file. The first is the sandbox's, the others those of rules with a budget.
  struct Account {
    uint64_t key = 0;  // of the rule: a hash of what it is about; 0: not used
    uint64_t bytes_out = 0, bytes_in = 0, connections = 0;
  };
  struct Counted {
    Account* account;
    Budget budget;
    std::string owner;
    double requests = 0;  // that may be made now
    SteadyTime since = {};
  };
  struct Book;

  Spending(int directory, SandboxId id) : directory_(directory), id_(id) {}
  Result<void> open_book();
  // Those that a connection of this rule is counted in.
  std::vector<Counted*> counted(size_t rule) const;

  int directory_;
  SandboxId id_;
  std::shared_ptr<Book> book_;  // shared so that this can be moved
  std::vector<std::unique_ptr<Counted>> counted_;
  std::vector<size_t> of_rule_;  // where in counted_; counted_.size(): nowhere
};

}  // namespace atl::egress
