#include "store/catalog.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/migrations.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

std::unique_ptr<Catalog> open_or_die(const std::string& path) {
  auto catalog = Catalog::open(path);
  if (!catalog) ADD_FAILURE() << catalog.error().message();
  return std::move(catalog).value();
}

SandboxRow sandbox_of(TenantId tenant, int64_t created_at_ms = 1000) {
  return SandboxRow{.id = SandboxId::draw(),
                    .tenant = tenant,
                    .template_name = "python",
                    .image = sha256("image"),
                    .created_at_ms = created_at_ms};
}

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() : catalog_(open_or_die(path_)) {}

  SandboxRow insert(TenantId tenant, int64_t created_at_ms = 1000) {
    SandboxRow row = sandbox_of(tenant, created_at_ms);
    row.sequence = catalog_->sequence().draw();
    auto inserted = catalog_->sandboxes().insert(row);
    EXPECT_TRUE(inserted.ok()) << inserted.error().message();
    return row;
  }
  void reopen() {
    catalog_.reset();
    catalog_ = open_or_die(path_);
  }

  TestDirectory directory_;
  std::string path_ = directory_ / "atoll.db";
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, EveryTableHasATenant) {
  auto database = Database::open(path_, Durability::kProcess);
  auto query = database->query(
      "SELECT count(*) FROM sqlite_schema s WHERE type = 'table' AND name NOT IN ("
      "'schema_version', 'sequence', 'epoch', 'sqlite_sequence') AND NOT EXISTS (SELECT 1 FROM "
      "pragma_table_info(s.name) WHERE name = 'tenant_id')");
  ASSERT_TRUE(query.ok() && query->next().value());
  EXPECT_EQ(query->int64(), 0);
}

TEST_F(CatalogTest, LocalTenantIsThereFromTheStart) {
  auto tenant = catalog_->tenants().find(kLocalTenant);
  ASSERT_TRUE(tenant.ok() && tenant->has_value());
  EXPECT_EQ((*tenant)->name, "local");
  auto other = catalog_->tenants().insert("other", 5);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(*other, kLocalTenant);
  EXPECT_EQ(catalog_->tenants().insert("other", 5).error().code(), Code::kConflict);
  EXPECT_EQ(catalog_->tenants().all()->size(), 2u);
}

TEST_F(CatalogTest, SandboxComesBackAsItWas) {
  SandboxRow row = sandbox_of(kLocalTenant);
  row.name = "my sandbox";
  row.state = "running";
  row.cpu_millis = 1500;
  row.memory_bytes = 512ull << 20;
  row.pids = 256;
  row.disk_bytes = 1ull << 30;
  row.output_bytes = 64ull << 20;
  row.open_files = 4096;
  row.disk_bytes_per_second = 8ull << 20;
  row.on_oom = "sandbox";
  row.cpu_time_ms = 90'000;
  row.required_extras = 5;
  row.ttl_ms = 300'000;
  row.idle_ttl_ms = 120'000;
  row.nonce.fill(7);
  row.metadata = R"({"user":"ünïcode"})";
  row.environment = R"({"A":"b"})";
  row.user = "root", row.directory = "/srv";
  row.failure = "none";
  row.generation = 3;
  row.next_exec = 9;
  row.sequence = 1ll << 41;
  row.paused_sequence = (1ll << 41) + 1;
  ASSERT_TRUE(catalog_->sandboxes().insert(row).ok());
  reopen();
  auto found = catalog_->sandboxes().find(kLocalTenant, row.id);
  ASSERT_TRUE(found.ok() && found->has_value());
  const SandboxRow& back = **found;
  EXPECT_EQ(back.id, row.id);
  EXPECT_EQ(back.tenant, row.tenant);
  EXPECT_EQ(back.name, row.name);
  EXPECT_EQ(back.state, row.state);
  EXPECT_EQ(back.template_name, row.template_name);
  EXPECT_EQ(back.image, row.image);
  EXPECT_EQ(back.cpu_millis, row.cpu_millis);
  EXPECT_EQ(back.memory_bytes, row.memory_bytes);
  EXPECT_EQ(back.pids, row.pids);
  EXPECT_EQ(back.disk_bytes, row.disk_bytes);
  EXPECT_EQ(back.output_bytes, row.output_bytes);
  EXPECT_EQ(back.open_files, row.open_files);
  EXPECT_EQ(back.disk_bytes_per_second, row.disk_bytes_per_second);
  EXPECT_EQ(back.on_oom, row.on_oom);
  EXPECT_EQ(back.cpu_time_ms, row.cpu_time_ms);
  EXPECT_EQ(back.required_extras, row.required_extras);
  EXPECT_EQ(back.ttl_ms, row.ttl_ms);
  EXPECT_EQ(back.idle_ttl_ms, row.idle_ttl_ms);
  EXPECT_EQ(back.nonce, row.nonce);
  EXPECT_EQ(back.metadata, row.metadata);
  EXPECT_EQ(back.environment, row.environment);
  EXPECT_EQ(back.user + back.directory, "root/srv");
  EXPECT_EQ(back.created_at_ms, row.created_at_ms);
  EXPECT_EQ(back.failure, row.failure);
  EXPECT_EQ(back.generation, row.generation);
  EXPECT_EQ(back.next_exec, row.next_exec);
  EXPECT_EQ(back.sequence, row.sequence);
  EXPECT_EQ(back.paused_sequence, row.paused_sequence);
}

TEST_F(CatalogTest, SandboxIdIsTakenOnceByAnyTenant) {
  TenantId other = catalog_->tenants().insert("other", 1).value();
  SandboxRow row = insert(kLocalTenant);
  row.tenant = other;
  EXPECT_EQ(catalog_->sandboxes().insert(row).error().code(), Code::kConflict);
}

TEST_F(CatalogTest, SandboxNeedsATenantAndAKnownState) {
  SandboxRow row = sandbox_of(*TenantId::from_number(77));
  EXPECT_EQ(catalog_->sandboxes().insert(row).error().code(), Code::kNotFound);
  row = sandbox_of(kLocalTenant);
  row.state = "runing";
  EXPECT_EQ(catalog_->sandboxes().insert(row).error().code(), Code::kInvalid);
}

TEST_F(CatalogTest, StateChangesAndRemembersTheFailure) {
  SandboxRow row = insert(kLocalTenant);
  ASSERT_TRUE(catalog_->sandboxes().set_state(kLocalTenant, row.id, "failed", "agent died").ok());
  auto found = catalog_->sandboxes().find(kLocalTenant, row.id);
  EXPECT_EQ((*found)->state, "failed");
  EXPECT_EQ((*found)->failure, "agent died");
  EXPECT_EQ(catalog_->sandboxes().set_state(kLocalTenant, row.id, "agent", "").error().code(),
            Code::kInvalid);
  EXPECT_EQ(
      catalog_->sandboxes().set_state(kLocalTenant, SandboxId::draw(), "failed", "").error().code(),
      Code::kNotFound);
}

TEST_F(CatalogTest, AnotherTenantSeesAndChangesNothing) {
  TenantId other = catalog_->tenants().insert("other", 1).value();
  SandboxRow row = insert(kLocalTenant);
  ExecId exec = catalog_->execs().insert(kLocalTenant, row.id, "{}", 1).value();

  EXPECT_FALSE(catalog_->sandboxes().find(other, row.id)->has_value());
  EXPECT_TRUE(catalog_->sandboxes().list(other, {})->empty());
  EXPECT_EQ(catalog_->sandboxes().count(other).value(), 0u);
  EXPECT_EQ(catalog_->sandboxes().set_state(other, row.id, "failed", "").error().code(),
            Code::kNotFound);
  EXPECT_EQ(catalog_->sandboxes().remove(other, row.id).error().code(), Code::kNotFound);
  EXPECT_EQ(catalog_->execs().insert(other, row.id, "{}", 1).error().code(), Code::kNotFound);
  EXPECT_FALSE(catalog_->execs().find(other, row.id, exec)->has_value());
  EXPECT_TRUE(catalog_->execs().list(other, row.id, std::nullopt, 10)->empty());
  EXPECT_EQ(catalog_->execs().set_started(other, row.id, exec, 5).error().code(), Code::kNotFound);
  ExecRow ended{.sandbox = row.id, .tenant = other, .id = exec, .verdict = "ok"};
  EXPECT_EQ(catalog_->execs().finish(ended).error().code(), Code::kNotFound);

  auto found = catalog_->execs().find(kLocalTenant, row.id, exec);
  EXPECT_EQ((*found)->state, "running");
  EXPECT_EQ((*found)->pid, 0u);
  EXPECT_EQ((*catalog_->sandboxes().find(kLocalTenant, row.id))->state, "creating");
}

TEST_F(CatalogTest, ListIsPagedInTheOrderOfCreationWhateverTheClockSays) {
  std::vector<SandboxRow> rows;
  for (int64_t created_at_ms : {30, 10, 20, 20, 20, 40})
    rows.push_back(insert(kLocalTenant, created_at_ms));
  std::vector<SandboxId> seen;
  std::optional<SandboxCursor> cursor;
  while (true) {
    auto page = catalog_->sandboxes().list(kLocalTenant, {.after = cursor, .limit = 2});
    ASSERT_TRUE(page.ok());
    if (page->empty()) break;
    for (const SandboxRow& row : *page) seen.push_back(row.id);
    ASSERT_LE(seen.size(), rows.size()) << "a sandbox came twice";
    cursor = SandboxCursor::of(page->back());
  }
  ASSERT_EQ(seen.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(seen[i], rows[i].id) << i;
  EXPECT_EQ(catalog_->sandboxes().count(kLocalTenant).value(), 6u);
}

TEST_F(CatalogTest, CursorHoldsWhenItsSandboxIsDeleted) {
  SandboxRow first = insert(kLocalTenant, 10);
  SandboxRow second = insert(kLocalTenant, 20);
  SandboxRow third = insert(kLocalTenant, 30);
  SandboxCursor cursor = SandboxCursor::of(second);
  ASSERT_TRUE(catalog_->sandboxes().remove(kLocalTenant, second.id).ok());
  auto page = catalog_->sandboxes().list(kLocalTenant, {.after = cursor});
  ASSERT_EQ(page->size(), 1u);
  EXPECT_EQ(page->front().id, third.id);
}

TEST_F(CatalogTest, ExecsAreNumberedFromOneInEachSandboxAndNeverTwice) {
  SandboxRow one = insert(kLocalTenant);
  SandboxRow two = insert(kLocalTenant);
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, one.id, "{}", 1)->number(), 1u);
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, one.id, "{}", 1)->number(), 2u);
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, two.id, "{}", 1)->number(), 1u);
  reopen();
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, one.id, "{}", 1)->number(), 3u);
  EXPECT_EQ((*catalog_->sandboxes().find(kLocalTenant, one.id))->next_exec, 4u);
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, SandboxId::draw(), "{}", 1).error().code(),
            Code::kNotFound);
}

TEST_F(CatalogTest, ExhaustedExecNumbersAreRefusedAndNothingIsWritten) {
  SandboxRow row = sandbox_of(kLocalTenant);
  row.next_exec = ExecId::kMax;
  ASSERT_TRUE(catalog_->sandboxes().insert(row).ok());
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, row.id, "{}", 1)->number(), ExecId::kMax);
  EXPECT_EQ(catalog_->execs().insert(kLocalTenant, row.id, "{}", 1).error().code(),
            Code::kExhausted);
  EXPECT_EQ((*catalog_->sandboxes().find(kLocalTenant, row.id))->next_exec, ExecId::kMax + 1);
}

TEST_F(CatalogTest, ExecEndsOnceWithAllItsFigures) {
  SandboxRow sandbox = insert(kLocalTenant);
  ExecId id = catalog_->execs().insert(kLocalTenant, sandbox.id, R"({"cmd":["a"]})", 77).value();
  ASSERT_TRUE(catalog_->execs().set_started(kLocalTenant, sandbox.id, id, 4242).ok());
  ExecRow row{.sandbox = sandbox.id, .tenant = kLocalTenant, .id = id, .verdict = "nonzero"};
  row.exit_code = 3;
  row.stdout_bytes = 1, row.stderr_bytes = 2, row.stdout_cut = 3, row.stderr_cut = 4;
  row.start_us = 5, row.wall_us = 6, row.drain_us = 7, row.user_us = 8, row.system_us = 9;
  row.peak_memory_bytes = 10;
  row.read_bytes = 11;
  row.written_bytes = 12;
  row.peak_memory_scope = "sandbox";
  row.limits_hit = 13;
  row.failure = "because";
  ASSERT_TRUE(catalog_->execs().finish(row).ok());

  ExecRow again = row;
  again.verdict = "ok";
  EXPECT_EQ(catalog_->execs().finish(again).error().code(), Code::kConflict);
  EXPECT_EQ(catalog_->execs().set_started(kLocalTenant, sandbox.id, id, 1).error().code(),
            Code::kConflict);
  reopen();
  auto found = catalog_->execs().find(kLocalTenant, sandbox.id, id);
  ASSERT_TRUE(found.ok() && found->has_value());
  const ExecRow& back = **found;
  EXPECT_EQ(back.state, "ended");
  EXPECT_EQ(back.request, R"({"cmd":["a"]})");
  EXPECT_EQ(back.created_at_ms, 77);
  EXPECT_EQ(back.pid, 4242u);
  EXPECT_EQ(back.verdict, "nonzero");
  EXPECT_EQ(back.exit_code, std::optional<int>(3));
  EXPECT_EQ(back.signal, std::nullopt);
  EXPECT_EQ(back.stdout_bytes, 1u);
  EXPECT_EQ(back.stderr_bytes, 2u);
  EXPECT_EQ(back.stdout_cut, 3u);
  EXPECT_EQ(back.stderr_cut, 4u);
  EXPECT_EQ(back.start_us, 5u);
  EXPECT_EQ(back.wall_us, 6u);
  EXPECT_EQ(back.drain_us, 7u);
  EXPECT_EQ(back.user_us, 8u);
  EXPECT_EQ(back.system_us, 9u);
  EXPECT_EQ(back.peak_memory_bytes, 10u);
  EXPECT_EQ(back.read_bytes, 11u);
  EXPECT_EQ(back.written_bytes, 12u);
  EXPECT_EQ(back.peak_memory_scope, "sandbox");
  EXPECT_EQ(back.limits_hit, 13u);
  EXPECT_EQ(back.failure, "because");
}

TEST_F(CatalogTest, ExecCannotEndWithoutAVerdict) {
  SandboxRow sandbox = insert(kLocalTenant);
  ExecId id = catalog_->execs().insert(kLocalTenant, sandbox.id, "{}", 1).value();
  ExecRow row{.sandbox = sandbox.id, .tenant = kLocalTenant, .id = id};
  EXPECT_EQ(catalog_->execs().finish(row).error().code(), Code::kInvalid);
}

TEST_F(CatalogTest, ExecsAreListedInOrderAndPaged) {
  SandboxRow sandbox = insert(kLocalTenant);
  for (int i = 0; i < 12; ++i)
    ASSERT_TRUE(catalog_->execs().insert(kLocalTenant, sandbox.id, "{}", 1).ok());
  auto first = catalog_->execs().list(kLocalTenant, sandbox.id, std::nullopt, 10);
  ASSERT_EQ(first->size(), 10u);
  EXPECT_EQ(first->front().id.number(), 1u);
  auto rest = catalog_->execs().list(kLocalTenant, sandbox.id, first->back().id, 10);
  ASSERT_EQ(rest->size(), 2u);
  EXPECT_EQ(rest->back().id.number(), 12u);
}

TEST_F(CatalogTest, RemovedSandboxTakesItsExecsAlong) {
  SandboxRow gone = insert(kLocalTenant);
  SandboxRow kept = insert(kLocalTenant);
  ExecId exec = catalog_->execs().insert(kLocalTenant, gone.id, "{}", 1).value();
  ASSERT_TRUE(catalog_->execs().insert(kLocalTenant, kept.id, "{}", 1).ok());
  ASSERT_TRUE(catalog_->sandboxes().remove(kLocalTenant, gone.id).ok());
  EXPECT_FALSE(catalog_->sandboxes().find(kLocalTenant, gone.id)->has_value());
  EXPECT_FALSE(catalog_->execs().find(kLocalTenant, gone.id, exec)->has_value());
  EXPECT_TRUE(catalog_->execs().all_running(gone.id)->empty());
  EXPECT_EQ(catalog_->execs().all_running(kept.id)->size(), 1u);
}

TEST_F(CatalogTest, StartUpFindsTheRowsOfAllTenants) {
  TenantId other = catalog_->tenants().insert("other", 1).value();
  SandboxRow running = insert(kLocalTenant, 10);
  SandboxRow failed = insert(kLocalTenant, 20);
  SandboxRow theirs = insert(other, 30);
  ASSERT_TRUE(catalog_->sandboxes().set_state(kLocalTenant, failed.id, "failed", "x").ok());
  auto rows = catalog_->sandboxes().all();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->at(0).id, running.id);
  EXPECT_EQ(rows->at(1).id, failed.id);
  EXPECT_EQ(rows->at(2).id, theirs.id);

  ExecId ended = catalog_->execs().insert(other, theirs.id, "{}", 1).value();
  ExecId still = catalog_->execs().insert(other, theirs.id, "{}", 1).value();
  ASSERT_TRUE(catalog_->execs()
                  .finish({.sandbox = theirs.id, .tenant = other, .id = ended, .verdict = "ok"})
                  .ok());
  auto execs = catalog_->execs().all_running(theirs.id);
  ASSERT_EQ(execs->size(), 1u);
  EXPECT_EQ(execs->front().id, still);
}

TEST_F(CatalogTest, RevokedKeyIsNotFoundButListed) {
  KeyRow row{.id = "k1",
             .tenant = kLocalTenant,
             .name = "ci",
             .hash = sha256("secret").bytes(),
             .created_at_ms = 5};
  ASSERT_TRUE(catalog_->keys().insert(row).ok());
  auto found = catalog_->keys().find_by_hash(row.hash);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->id, "k1");
  EXPECT_EQ((*found)->tenant, kLocalTenant);
  EXPECT_EQ((*found)->name, "ci");
  EXPECT_EQ((*found)->hash, row.hash);
  EXPECT_FALSE(catalog_->keys().find_by_hash(sha256("other").bytes())->has_value());

  TenantId other = catalog_->tenants().insert("other", 1).value();
  EXPECT_EQ(catalog_->keys().revoke(other, "k1", 9).error().code(), Code::kNotFound);
  ASSERT_TRUE(catalog_->keys().revoke(kLocalTenant, "k1", 9).ok());
  EXPECT_FALSE(catalog_->keys().find_by_hash(row.hash)->has_value());
  EXPECT_EQ(catalog_->keys().list(kLocalTenant)->at(0).revoked_at_ms, std::optional<int64_t>(9));
  EXPECT_TRUE(catalog_->keys().list(other)->empty());
  row.id = "k2";
  EXPECT_EQ(catalog_->keys().insert(row).error().code(), Code::kConflict);
}

TEST_F(CatalogTest, ReplacedKeyIsTheOnlyOneOfItsName) {
  auto key = [](const std::string& id, const std::string& name) {
    return KeyRow{.id = id,
                  .tenant = kLocalTenant,
                  .name = name,
                  .hash = sha256(id).bytes(),
                  .created_at_ms = 5};
  };
  ASSERT_TRUE(catalog_->keys().insert(key("a", "local")).ok());
  ASSERT_TRUE(catalog_->keys().insert(key("b", "ci")).ok());
  ASSERT_TRUE(catalog_->keys().replace(key("c", "local")).ok());
  EXPECT_FALSE(catalog_->keys().find_by_hash(sha256("a").bytes())->has_value());
  EXPECT_TRUE(catalog_->keys().find_by_hash(sha256("b").bytes())->has_value());
  EXPECT_TRUE(catalog_->keys().find_by_hash(sha256("c").bytes())->has_value());
  // A replacement that cannot be inserted revokes nothing.
  EXPECT_EQ(catalog_->keys().replace(key("c", "local")).error().code(), Code::kConflict);
  EXPECT_TRUE(catalog_->keys().find_by_hash(sha256("c").bytes())->has_value());
}

TEST(Catalog, RefusesAFileThatIsNotADatabase) {
  TestDirectory directory;
  ASSERT_TRUE(replace_file(directory / "db", std::string(8192, 'x'), 0600).ok());
  auto refused = Catalog::open(directory / "db");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kCorrupt);
}

TEST(Catalog, RefusesANewerSchema) {
  TestDirectory directory;
  { auto catalog = open_or_die(directory / "db"); }
  {
    auto database = Database::open(directory / "db", Durability::kMachine);
    ASSERT_TRUE(database->run("UPDATE schema_version SET version = ?", 999).ok());
  }
  auto refused = Catalog::open(directory / "db");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
}

// Inserts without end and tells each id only after the insert has returned.
[[noreturn]] void insert_until_killed(const std::string& path, int pipe_end) {
  auto catalog = Catalog::open(path);
  if (!catalog) _exit(1);
  while (true) {
    SandboxRow row = sandbox_of(kLocalTenant);
    if (!(*catalog)->sandboxes().insert(row).ok()) _exit(2);
    if (!(*catalog)->execs().insert(kLocalTenant, row.id, "{}", 1).ok()) _exit(3);
    std::string told = row.id.string();
    if (write(pipe_end, told.data(), told.size()) != static_cast<ssize_t>(told.size())) _exit(4);
  }
}

TEST(Catalog, EveryAcknowledgedRowSurvivesKillNine) {
  TestDirectory directory;
  std::string path = directory / "db";
  std::set<std::string> acknowledged;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) insert_until_killed(path, ends[1]);
    ASSERT_GT(child, 0);
    Fd reader(ends[0]);
    Fd(ends[1]).reset();
    size_t before = acknowledged.size();
    char id[SandboxId::kLength];
    bool killed = false;
    // At a different place each round; what is in the pipe after the kill counts too.
    while (read(reader.get(), id, sizeof id) == static_cast<ssize_t>(sizeof id)) {
      acknowledged.emplace(id, sizeof id);
      if (killed || acknowledged.size() < before + 50 + 37 * static_cast<size_t>(round)) continue;
      ASSERT_EQ(kill(child, SIGKILL), 0);
      killed = true;
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
  }
  auto catalog = open_or_die(path);
  for (const std::string& text : acknowledged) {
    auto id = SandboxId::parse(text);
    ASSERT_TRUE(id.has_value());
    EXPECT_TRUE(catalog->sandboxes().find(kLocalTenant, *id)->has_value()) << text;
    EXPECT_EQ(catalog->execs().all_running(*id)->size(), 1u) << text;
  }
  // At most the one that was under way in each round came without being told.
  EXPECT_LE(catalog->sandboxes().count(kLocalTenant).value(), acknowledged.size() + 5);
  printf("acknowledged rows: %zu\n", acknowledged.size());
}

}  // namespace
}  // namespace atl::store
