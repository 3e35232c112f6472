#include "sandbox/idempotency.h"

#include "base/crash_point.h"
#include "base/log.h"
#include "store/sha256.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::minutes kSweepPause{10};

Error key_reused() {
  return Error(Code::kConflict, "the idempotency key was used for another request")
      .with_reason("idempotency_key_reused")
      .with_field("Idempotency-Key");
}

}  // namespace

struct Idempotency::Flight {
  Flight(boost::asio::any_io_executor executor, const Digest& hash)
      : request(hash), done(executor) {}
  Digest request;
  bool over = false;
  std::optional<StoredAnswer> answer;
  std::optional<Error> error;
  Event done;
};

Idempotency::Turn::~Turn() {
  std::shared_ptr<Flights> flights = flights_.lock();
  if (!flight_ || !flights) return;
  flight_->over = true;
  flight_->done.notify_all();
  flights->erase(key_);
}

Task<Result<Idempotency::Turn>> Idempotency::take(IdempotencyKey key, std::string request) {
  Digest hash = store::sha256(request);
  Turn turn(key);
  while (true) {
    auto found = flights_->find(key);
    if (found == flights_->end()) break;
    std::shared_ptr<Flight> other = found->second;
    if (other->request != hash) co_return key_reused();
    while (!other->over) co_await other->done.wait();
    if (other->error) co_return *other->error;
    turn.answer_ = other->answer;
    if (turn.answer_) co_return std::move(turn);
  }
  turn.flight_ = std::make_shared<Flight>(executor_, hash);
  turn.flights_ = flights_;
  flights_->emplace(key, turn.flight_);
  int64_t now_ms = time_.now_ms();
  auto take_row = [key, hash, now_ms](store::Catalog& catalog) {
    return catalog.idempotency().take(key, hash, now_ms);
  };
  ATOLL_CO_TRY(store::IdempotencyRow row, co_await ledger_.run(take_row));
  crash_point("idempotency.row");
  if (row.request != hash) co_return key_reused();
  turn.answer_ = row.answer;
  turn.flight_->answer = row.answer;
  turn.made_ = row.made;
  co_return std::move(turn);
}

Task<Result<void>> Idempotency::finish(Turn& turn, StoredAnswer answer) {
  auto store_answer = [key = turn.key(), answer](store::Catalog& catalog) {
    return catalog.idempotency().set_answer(key, answer);
  };
  crash_point("idempotency.made");
  ATOLL_CO_TRY_VOID(co_await ledger_.run(store_answer));
  crash_point("idempotency.answer");
  turn.flight_->answer = std::move(answer);
  co_return Result<void>();
}

Task<Result<void>> Idempotency::fail(Turn& turn, Error error) {
  turn.flight_->error = std::move(error);
  auto release = [key = turn.key()](store::Catalog& catalog) {
    return catalog.idempotency().release(key);
  };
  co_return co_await ledger_.run(release);
}

Task<void> Idempotency::sweep() {
  if (clock_.steady_now() < next_sweep_) co_return;
  next_sweep_ = clock_.steady_now() + kSweepPause;
  int64_t now_ms = time_.now_ms();
  auto forget = [now_ms](store::Catalog& catalog) {
    return catalog.idempotency().forget_expired(now_ms);
  };
  while (true) {
    auto forgotten = co_await ledger_.run(forget);
    if (!forgotten) log_error("idempotency keys could not be forgotten", {forgotten.error()});
    if (!forgotten || *forgotten < static_cast<int64_t>(store::kMaxForgotten)) co_return;
  }
}

}  // namespace atl::sandbox
