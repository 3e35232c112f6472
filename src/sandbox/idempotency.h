// Idempotency: a request that carries a key happens once, however often and however concurrently it
// is sent. The first to come has the Turn and does the work; equal requests that come meanwhile
// wait for its end and get the same answer, later ones get the stored answer.
//
// A Turn that ends without an answer (a stream, a crash) leaves the key with what was made; who
// takes it up next answers about that instead of making it again. Belongs to the io_context thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/unstepped_time.h"
#include "isolate/event.h"
#include "sandbox/ledger.h"

namespace atl::sandbox {

using store::IdempotencyKey;
using store::Made;
using store::StoredAnswer;

class Idempotency {
  struct Flight;
  using Flights = std::map<IdempotencyKey, std::shared_ptr<Flight>>;

 public:
  // Its end lets the next one in. At shutdown it may outlive the Idempotency that gave it.
  class [[nodiscard]] Turn {
   public:
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    const IdempotencyKey& key() const { return key_; }
    // There already: nothing is to be done.
    const std::optional<StoredAnswer>& answer() const { return answer_; }
    // Made by an earlier turn that did not come to its answer.
    const Made& made() const { return made_; }

   private:
    friend class Idempotency;
    explicit Turn(IdempotencyKey key) : key_(std::move(key)) {}

    IdempotencyKey key_;
    std::weak_ptr<Flights> flights_;
    std::shared_ptr<Flight> flight_;  // null: there is an answer; shared with those who wait
    std::optional<StoredAnswer> answer_;
    Made made_;
  };

  Idempotency(boost::asio::any_io_executor executor, Ledger& ledger, const Clock& clock)
      : executor_(std::move(executor)), ledger_(ledger), clock_(clock), time_(clock) {}

  // `request` is all that makes it the same request. kConflict with reason idempotency_key_reused:
  // the key was used for another one. While the same request is under way, waits for its end; an
  // error of it is given to all who waited.
  Task<Result<Turn>> take(IdempotencyKey key, std::string request);
  // Stores the answer and gives it to those who wait. It may be sent once this has succeeded.
  Task<Result<void>> finish(Turn& turn, StoredAnswer answer);
  // The request failed like this.
  Task<Result<void>> fail(Turn& turn, Error error);

  // Forgets keys that are older than store::kIdempotencyTime; looks at most every ten minutes.
  Task<void> sweep();

 private:
  boost::asio::any_io_executor executor_;
  Ledger& ledger_;
  const Clock& clock_;
  UnsteppedTime time_;
  std::shared_ptr<Flights> flights_ = std::make_shared<Flights>();  // turns look whether it lives
  SteadyTime next_sweep_ = SteadyTime::min();
};

}  // namespace atl::sandbox
