#include "store/idempotency_rows.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr int64_t kDayMs = 24 * 3600 * 1000;

class IdempotencyRowsTest : public testing::Test {
 protected:
  IdempotencyRowsTest() { reopen(); }
  void reopen() {
    catalog_.reset();
    catalog_ = std::move(Catalog::open(directory_ / "atoll.db")).value();
  }
  IdempotencyRow take(const IdempotencyKey& key, const Digest& request, int64_t now_ms = 0) {
    auto row = rows().take(key, request, now_ms);
    EXPECT_TRUE(row.ok()) << row.error().message();
    return std::move(row).value();
  }
  SandboxRow sandbox() const {
    return SandboxRow{.id = SandboxId::draw(),
                      .tenant = kLocalTenant,
                      .template_name = "python",
                      .image = sha256("image")};
  }
  IdempotencyRows& rows() { return catalog_->idempotency(); }

  TestDirectory directory_;
  std::unique_ptr<Catalog> catalog_;
  IdempotencyKey key_{kLocalTenant, "key 1"};
  Digest request_ = sha256("POST /v1/sandboxes {}");
};

TEST_F(IdempotencyRowsTest, AnswerComesBackToTheSameKeyOfTheSameTenantOnly) {
  EXPECT_FALSE(take(key_, request_).answer.has_value());
  ASSERT_TRUE(rows().set_answer(key_, {201, "/v1/sandboxes/x", "{\"id\":\"ü\"}\n"}).ok());
  reopen();
  IdempotencyRow again = take(key_, sha256("another request"));
  EXPECT_EQ(again.request, request_);
  ASSERT_TRUE(again.answer.has_value());
  EXPECT_EQ(again.answer->status, 201u);
  EXPECT_EQ(again.answer->location, "/v1/sandboxes/x");
  EXPECT_EQ(again.answer->body, "{\"id\":\"ü\"}\n");
  TenantId other = catalog_->tenants().insert("other", 1).value();
  EXPECT_FALSE(take({other, key_.text}, request_).answer.has_value());
  EXPECT_FALSE(take({kLocalTenant, "key 2"}, request_).answer.has_value());
}

TEST_F(IdempotencyRowsTest, WhatIsMadeIsWrittenWithItsKeyOrNotAtAll) {
  take(key_, request_);
  SandboxRow row = sandbox();
  ASSERT_TRUE(rows().insert_sandbox(key_, row).ok());
  EXPECT_EQ(take(key_, request_).made.sandbox, row.id);
  EXPECT_TRUE(catalog_->sandboxes().find(kLocalTenant, row.id)->has_value());
  IdempotencyKey second{kLocalTenant, "exec"};
  take(second, request_);
  ExecRow exec{.sandbox = row.id, .tenant = kLocalTenant, .id = *ExecId::from_number(1)};
  ASSERT_TRUE(rows().insert_exec(second, exec).ok());
  EXPECT_EQ(take(second, request_).made.exec, exec.id);
  EXPECT_EQ(take(second, request_).made.sandbox, row.id);
  // Without a row of the key, and with a sandbox that is there already, nothing is written.
  IdempotencyKey unknown{kLocalTenant, "unknown"};
  SandboxRow lost = sandbox();
  EXPECT_FALSE(rows().insert_sandbox(unknown, lost).ok());
  EXPECT_FALSE(catalog_->sandboxes().find(kLocalTenant, lost.id)->has_value());
  exec.id = *ExecId::from_number(2);
  EXPECT_FALSE(rows().insert_exec(unknown, exec).ok());
  EXPECT_EQ(catalog_->execs().list(kLocalTenant, row.id, std::nullopt, 10)->size(), 1u);
  IdempotencyKey third{kLocalTenant, "third"};
  take(third, request_);
  EXPECT_FALSE(rows().insert_sandbox(third, row).ok());
  EXPECT_FALSE(take(third, request_).made.sandbox.has_value());
}

TEST_F(IdempotencyRowsTest, KeyOfARequestThatMadeNothingIsFreeAgain) {
  take(key_, request_);
  ASSERT_TRUE(rows().release(key_).ok());
  Digest other = sha256("other");
  EXPECT_EQ(take(key_, other).request, other);
  ASSERT_TRUE(rows().insert_sandbox(key_, sandbox()).ok());
  ASSERT_TRUE(rows().release(key_).ok());
  EXPECT_EQ(take(key_, request_).request, other) << "what was made keeps its key";
}

TEST_F(IdempotencyRowsTest, KeyIsForgottenAfterADay) {
  take(key_, request_, 1000);
  ASSERT_TRUE(rows().set_answer(key_, {201, "", "x"}).ok());
  EXPECT_TRUE(take(key_, request_, 999 + kDayMs).answer.has_value());
  EXPECT_FALSE(take(key_, request_, 1000 + kDayMs).answer.has_value());
  take({kLocalTenant, "old"}, request_, 1000);
  EXPECT_EQ(rows().forget_expired(999 + kDayMs).value(), 0);
  EXPECT_EQ(rows().forget_expired(1000 + kDayMs).value(), 1);
  EXPECT_EQ(rows().forget_expired(1000 + 2 * kDayMs).value(), 1);
}

TEST_F(IdempotencyRowsTest, AnswerThatIsTooLargeIsNotStored) {
  take(key_, request_);
  ASSERT_TRUE(rows().set_answer(key_, {200, "", std::string(kMaxAnswerBytes + 1, 'x')}).ok());
  EXPECT_FALSE(take(key_, request_).answer.has_value());
  ASSERT_TRUE(rows().set_answer(key_, {200, "", std::string(kMaxAnswerBytes, 'x')}).ok());
  EXPECT_TRUE(take(key_, request_).answer.has_value());
}

TEST_F(IdempotencyRowsTest, NumberAndBytesOfATenantAreBounded) {
  take(key_, request_);
  auto database = Database::open(directory_ / "atoll.db", Durability::kProcess);
  ASSERT_TRUE(database.ok());
  auto set = [&](uint64_t keys, uint64_t bytes) {
    return database->run("UPDATE idempotency_totals SET keys = ?, bytes = ?", keys, bytes).ok();
  };
  ASSERT_TRUE(set(kMaxIdempotencyKeys, 0));
  auto refused = rows().take({kLocalTenant, "one more"}, request_, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "too_many_idempotency_keys");
  EXPECT_TRUE(rows().take(key_, request_, 0).ok()) << "it has its place";
  ASSERT_TRUE(rows().release(key_).ok());
  EXPECT_TRUE(rows().take({kLocalTenant, "one more"}, request_, 0).ok());
  ASSERT_TRUE(set(1, kMaxAnswerBytesTogether - 3));
  ASSERT_TRUE(rows().set_answer({kLocalTenant, "one more"}, {200, "", "four"}).ok());
  EXPECT_FALSE(take({kLocalTenant, "one more"}, request_).answer.has_value());
  ASSERT_TRUE(rows().set_answer({kLocalTenant, "one more"}, {200, "", "ü+"}).ok());
  EXPECT_TRUE(take({kLocalTenant, "one more"}, request_).answer.has_value());
  auto totals = database->query("SELECT bytes FROM idempotency_totals");
  ASSERT_TRUE(totals.ok() && totals->next().value());
  EXPECT_EQ(totals->uint64(), kMaxAnswerBytesTogether) << "in bytes, not in characters";
}

}  // namespace
}  // namespace atl::store
