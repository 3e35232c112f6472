// Table idempotency_keys: requests that shall happen once, however often they are sent. Written
// with kMachine durability: a key that was used is remembered also after a loss of power.
//
// A row is taken before the request does anything. What the request makes (a sandbox, an exec) is
// written together with its key, in one transaction, so after a crash the row tells whether it was
// made and which it is. The answer is stored before it is sent. An answer over kMaxAnswerBytes, or
// beyond its tenant's share, is not stored: what was made is enough to answer again, with the state
// that it has then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "store/context_rows.h"
#include "store/database.h"
#include "store/exec_rows.h"
#include "store/sandbox_rows.h"
#include "store/tenant.h"

namespace atl::store {

inline constexpr std::chrono::hours kIdempotencyTime{24};
inline constexpr size_t kMaxIdempotencyKeyBytes = 255;
inline constexpr uint64_t kMaxIdempotencyKeys = 100'000;  // of one tenant
inline constexpr size_t kMaxAnswerBytes = 1 << 20;
inline constexpr uint64_t kMaxAnswerBytesTogether = 256ull << 20;  // of one tenant

struct IdempotencyKey {
  TenantId tenant;
  std::string text;
  auto operator<=>(const IdempotencyKey&) const = default;
};

// What a request has made so far.
struct Made {
  std::optional<SandboxId> sandbox = {};
  std::optional<ExecId> exec = {};
  std::optional<ContextId> context = {};
  std::optional<uint32_t> run = {};  // of the context
};

struct StoredAnswer {
  uint32_t status = 0;
  std::string location = {};  // empty: none
  std::string body = {};
};

struct IdempotencyRow {
  Digest request;  // method, target and body
  Made made = {};
  std::optional<StoredAnswer> answer = {};
};

class IdempotencyRows {
 public:
  // `machine` is also where sandboxes and execs with a key are inserted.
  explicit IdempotencyRows(Database& machine) : database_(machine) {}

  // Takes the key for `request`, or gives the row of whoever took it in the last 24 hours.
  // kExhausted with reason too_many_idempotency_keys: the tenant has its full number.
  Result<IdempotencyRow> take(const IdempotencyKey& key, const Digest& request, int64_t now_ms);
  // As SandboxRows::insert() and ExecRows::insert(), with the key that they were made for.
  Result<void> insert_sandbox(const IdempotencyKey& key, const SandboxRow& row);
  Result<void> insert_exec(const IdempotencyKey& key, const ExecRow& row);
  Result<void> insert_context(const IdempotencyKey& key, const ContextRow& row);
  Result<void> insert_run(const IdempotencyKey& key, const RunRow& row);
  Result<void> set_answer(const IdempotencyKey& key, const StoredAnswer& answer);
  // The request failed; if it has made nothing, the key may be used again.
  Result<void> release(const IdempotencyKey& key);
  // At most kMaxForgotten at once; gives how many. Of all tenants.
  Result<int64_t> forget_expired(int64_t now_ms);

 private:
  Result<void> set_made(const IdempotencyKey& key, const Made& made);

  Database& database_;
};

inline constexpr uint64_t kMaxForgotten = 1000;

}  // namespace atl::store
