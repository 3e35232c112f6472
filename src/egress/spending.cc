#include "egress/spending.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file.h"
#include "store/sha256.h"

namespace atl::egress {
namespace {

constexpr size_t kAccounts = kMaxRules + 1;

std::string file_name(const SandboxId& id) { return id.string() + ".spent"; }

// What a rule is about, but not how much of it.
uint64_t key_of(const Rule& rule) {
  std::string text = rule.target_text();
  for (uint16_t port : rule.ports) text += ":" + std::to_string(port);
  text += " " + std::string(protocol_name(rule.protocol));
  store::Sha256 sum;
  sum.update(text);
  Digest digest = sum.finish();
  uint64_t key = 0;
  std::memcpy(&key, digest.bytes().data(), sizeof key);
  return key | 2;  // neither 0 nor that of the sandbox
}

constexpr uint64_t kKeyOfSandbox = 1;

Error used_up(std::string_view reason, const std::string& owner) {
  return Error(Code::kDenied, owner + " is used up").with_reason(reason).with_field(owner);
}

bool has_budget(const Policy& policy) {
  auto bounded = [](const Rule& rule) { return rule.budget.is_bounded(); };
  return policy.budget.is_bounded() ||
         std::any_of(policy.rules.begin(), policy.rules.end(), bounded);
}

}  // namespace

struct Spending::Book {
  using Page = std::array<Account, kAccounts>;
  explicit Book(Page* page) : accounts(page) {}
  Book(const Book&) = delete;
  ~Book() { munmap(accounts, sizeof *accounts); }
  Page* accounts;
};

Result<Spending> Spending::open(int directory, SandboxId id, const Policy& policy) {
  Spending spending(directory, id);
  ATOLL_TRY_VOID(spending.change(policy));
  return spending;
}

Result<void> Spending::remove(int directory, SandboxId id) {
  if (unlinkat(directory, file_name(id).c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove " + file_name(id));
  return {};
}

Result<void> Spending::open_book() {
  if (book_) return {};
  ATOLL_TRY(Fd file, open_at(directory_, file_name(id_), O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (ftruncate(file.get(), sizeof(Book::Page)) != 0) return Error::system("size the budgets");
  void* memory =
      mmap(nullptr, sizeof(Book::Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return Error::system("map the budgets");
  book_ = std::make_shared<Book>(static_cast<Book::Page*>(memory));
  return {};
}

Result<void> Spending::change(const Policy& policy) {
  of_rule_.clear();
  counted_.clear();
  if (!has_budget(policy)) return {};
  ATOLL_TRY_VOID(open_book());
  std::vector<Account> before(book_->accounts->begin(), book_->accounts->end());
  Book::Page& page = *book_->accounts;
  size_t used = 0;
  auto enter = [&](uint64_t key, const Budget& budget, std::string owner) {
    auto same = [key](const Account& one) { return one.key == key; };
    auto old = std::find_if(before.begin(), before.end(), same);
    page[used] = old == before.end() ? Account{.key = key} : *old;
    auto one = std::make_unique<Counted>();
    one->account = &page[used];
    one->budget = budget;
    one->owner = std::move(owner);
    counted_.push_back(std::move(one));
    ++used;
  };
  enter(kKeyOfSandbox, policy.budget, "budget");
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    of_rule_.push_back(counted_.size());
    if (rule.budget.is_bounded())
      enter(key_of(rule), rule.budget, policy.rule_name(i) + ".budget");
    else
      of_rule_.back() = kAccounts;
  }
  std::fill(page.begin() + static_cast<long>(used), page.end(), Account{});
  return {};
}

std::vector<Spending::Counted*> Spending::counted(size_t rule) const {
  std::vector<Counted*> found;
  if (counted_.empty()) return found;
  if (rule < of_rule_.size() && of_rule_[rule] < counted_.size())
    found.push_back(counted_[of_rule_[rule]].get());
  found.push_back(counted_[0].get());
  return found;
}

Result<void> Spending::begin_connection(size_t rule) {
  for (const Counted* one : counted(rule))
    if (one->budget.connections != 0 && one->account->connections >= one->budget.connections)
      return used_up("budget_connections", one->owner);
  for (Counted* one : counted(rule)) ++one->account->connections;
  return {};
}

// A bucket that holds what may be made in one second.
Result<void> Spending::take_requests(size_t rule, uint64_t count, SteadyTime now) {
  auto wanted = static_cast<double>(count);
  for (Counted* one : counted(rule)) {
    auto rate = static_cast<double>(one->budget.requests_per_second);
    if (rate == 0) continue;
    double seconds = std::chrono::duration<double>(now - one->since).count();
    one->requests = std::min(rate, one->requests + std::max(0.0, seconds) * rate);
    one->since = now;
    if (one->requests < wanted) return used_up("budget_requests", one->owner);
  }
  for (Counted* one : counted(rule))
    if (one->budget.requests_per_second != 0) one->requests -= wanted;
  return {};
}

uint64_t Spending::left(size_t rule, Flow flow) const {
  uint64_t least = UINT64_MAX;
  for (const Counted* one : counted(rule)) {
    uint64_t most = flow == Flow::kOut ? one->budget.bytes_out : one->budget.bytes_in;
    uint64_t used = flow == Flow::kOut ? one->account->bytes_out : one->account->bytes_in;
    if (most != 0) least = std::min(least, most - std::min(most, used));
  }
  return least;
}

void Spending::spend(size_t rule, Flow flow, uint64_t bytes) {
  for (Counted* one : counted(rule))
    (flow == Flow::kOut ? one->account->bytes_out : one->account->bytes_in) += bytes;
}

Error Spending::overdraft(size_t rule, Flow flow) const {
  std::string owner;
  uint64_t least = UINT64_MAX;
  for (const Counted* one : counted(rule)) {
    uint64_t most = flow == Flow::kOut ? one->budget.bytes_out : one->budget.bytes_in;
    uint64_t used = flow == Flow::kOut ? one->account->bytes_out : one->account->bytes_in;
    if (most == 0 || most - std::min(most, used) >= least) continue;
    least = most - std::min(most, used);
    owner = one->owner;
  }
  return used_up(flow == Flow::kOut ? "budget_bytes_out" : "budget_bytes_in", owner);
}

}  // namespace atl::egress
