// Costs of commits and of the calls of the catalog.
#include <stdio.h>

#include <chrono>

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

TEST(StoreCost, OfACommitOfEachDurability) {
  TestDirectory directory;
  for (Durability durability : {Durability::kProcess, Durability::kMachine}) {
    auto opened = Database::open(directory / "db", durability);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    Database database = std::move(*opened);
    ASSERT_TRUE(database.execute("CREATE TABLE IF NOT EXISTS t (a TEXT) STRICT").ok());
    constexpr int kCommits = 100;
    std::string value(300, 'v');
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCommits; ++i)
      ASSERT_TRUE(database.run("INSERT INTO t VALUES (?)", value).ok());
    std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    printf("insert + commit, %s: %.1f us\n",
           durability == Durability::kProcess ? "kProcess" : "kMachine",
           elapsed.count() / kCommits);
  }
}

TEST(StoreCost, OfACallOnTheRequestPath) {
  TestDirectory directory;
  auto catalog = Catalog::open(directory / "atoll.db");
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  auto insert = [&] {
    SandboxRow row{.id = SandboxId::draw(),
                   .tenant = kLocalTenant,
                   .template_name = "python",
                   .image = sha256("image"),
                   .created_at_ms = 1000};
    EXPECT_TRUE((*catalog)->sandboxes().insert(row).ok());
    return row;
  };
  constexpr int kCalls = 100;
  auto report = [](const char* what, auto call) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call(i);
    std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    printf("%s: %.1f us\n", what, elapsed.count() / kCalls);
  };
  SandboxRow sandbox = insert();
  report("insert sandbox", [&](int) { insert(); });
  report("find sandbox",
         [&](int) { EXPECT_TRUE((*catalog)->sandboxes().find(kLocalTenant, sandbox.id).ok()); });
  report("insert exec", [&](int) {
    EXPECT_TRUE((*catalog)->execs().insert(kLocalTenant, sandbox.id, "{}", 1).ok());
  });
  report("finish exec", [&](int i) {
    ExecId id = *ExecId::from_number(static_cast<uint32_t>(i + 1));
    ExecRow row{.sandbox = sandbox.id, .tenant = kLocalTenant, .id = id, .verdict = "ok"};
    EXPECT_TRUE((*catalog)->execs().finish(row).ok());
  });
  report("insert key (durable)", [&](int i) {
    std::string id = "k" + std::to_string(i);
    KeyRow row{.id = id, .tenant = kLocalTenant, .name = "n", .hash = sha256(id).bytes()};
    EXPECT_TRUE((*catalog)->keys().insert(row).ok());
  });
  report("find key", [&](int) {
    EXPECT_TRUE((*catalog)->keys().find_by_hash(sha256("k1").bytes())->has_value());
  });
}

}  // namespace
}  // namespace atl::store
