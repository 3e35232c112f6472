#include "daemon/rounds.h"

#include <boost/asio/steady_timer.hpp>

#include "async/spawn.h"
#include "base/lived_time.h"

namespace atl::daemon {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kRoundPeriod = isolate::kPeerLook;
// Behind much work of others.
constexpr std::chrono::milliseconds kMostDatabaseTime{5'000};

}  // namespace

struct Rounds::Question {
  std::chrono::milliseconds waited{0};
  bool answered = false;
  std::string trouble = {};
};

Rounds::Rounds(asio::any_io_executor executor, const std::string& run_directory,
               sandbox::Ledger& ledger, api::Health& health)
    : executor_(executor),
      warden_(run_directory, "atoll-warden"),
      builder_(run_directory, "atoll-builder"),
      egress_(run_directory + "/egress", "atoll-egress"),
      ledger_(ledger),
      health_(health) {}

Task<void> Rounds::ask_database(sandbox::Ledger& ledger, std::shared_ptr<Question> question) {
  auto read = [](store::Catalog& catalog) { return catalog.tenants().find(store::kLocalTenant); };
  auto found = co_await ledger.run(read);
  bool replaced = !found && found.error().reason() == "database_replaced";
  if (!found) question->trouble = replaced ? "database_replaced" : "it cannot be read";
  question->answered = true;
}

void Rounds::look_at_database(std::chrono::milliseconds passed) {
  if (question_ && !question_->answered) {
    question_->waited += passed;
    if (question_->waited >= kMostDatabaseTime) health_.report("database", "it does not answer");
    return;
  }
  if (question_) health_.report("database", question_->trouble);
  question_ = std::make_shared<Question>();
  // detached: owns a share of the question; the ledger outlives the io_context's work
  spawn(executor_, ask_database(ledger_, question_));
}

Task<void> Rounds::run() {
  LivedTime lived(2 * kRoundPeriod);
  while (true) {
    std::chrono::milliseconds passed = lived.look(std::chrono::steady_clock::now());
    warden_.look(passed);
    builder_.look(passed);
    egress_.look(passed);
    health_.report("warden", warden_.trouble());
    health_.report("builder", builder_.trouble());
    health_.report("egress", egress_.trouble());
    look_at_database(passed);
    asio::steady_timer pause(executor_, kRoundPeriod);
    bool waited = co_await wait(pause);
    if (!waited) co_return;
  }
}

}  // namespace atl::daemon
