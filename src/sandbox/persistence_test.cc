// What comes back after the end of the machine, with a fake isolate.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include <gtest/gtest.h>

#include "sandbox/pause.h"
#include "sandbox/test_bed.h"

namespace {
std::atomic<int> syncs = 0;
}

// Instead of the C library's: SQLite calls one of them for each commit that shall be on disk.
extern "C" int fdatasync(int file) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
extern "C" int fsync(int file) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace atl::sandbox {
namespace {

class PersistenceTest : public testing::Test {
 protected:
  std::shared_ptr<Sandbox> create(std::optional<std::string> persistence) {
    CreateSandbox request = bed_.create_request();
    request.persistence = std::move(persistence);
    auto created = bed_.run(bed_.sandboxes().create(store::kLocalTenant, std::move(request)));
    EXPECT_TRUE(created.ok());
    return created->sandbox;
  }
  void put(const Sandbox& sandbox, std::string content) {
    bed_.driver->files(sandbox.id()).contents()["/tmp/a"] = std::move(content);
  }
  void restart() {
    bed_.restart();
    ASSERT_TRUE(bed_.run(bed_.sandboxes().adopt()).ok());
    bed_.settle();
  }
  std::shared_ptr<Sandbox> find(SandboxId id) {
    return bed_.sandboxes().find(store::kLocalTenant, id);
  }

  TestBed bed_;
};

TEST_F(PersistenceTest, FilesComeBackUnderTheIdAndNothingElseDoes) {
  SandboxId kept = create("persistent")->id(), other = create(std::nullopt)->id();
  put(*find(kept), "files");
  ExecId exec = bed_.start_exec(*find(kept), {"hang"})->id();
  auto nonce = find(kept)->row().nonce;
  bed_.driver->lose_power();
  restart();
  auto back = find(kept);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->state(), State::kRunning);
  EXPECT_EQ(back->row().generation, 2u);
  EXPECT_NE(back->row().nonce, nonce);
  EXPECT_EQ(bed_.driver->files(kept).contents().at("/tmp/a"), "files");
  auto row = bed_.run(back->execs().find(exec));
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ((*row)->verdict, "sandbox_gone");
  EXPECT_EQ(bed_.run_exec(*back, {"echo", "again"}).verdict, "ok");
  EXPECT_EQ(find(other)->state(), State::kFailed);
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, kept)).ok());
  EXPECT_TRUE(bed_.driver->kept.empty());
}

TEST_F(PersistenceTest, WhatIsAcknowledgedIsOnDiskAndOnlyThat) {
  auto syncs_of = [](auto&& deed) {
    int before = syncs;
    deed();
    return syncs - before;
  };
  create(std::nullopt);  // what is opened or made once is not counted
  create("persistent");
  for (bool persists : {false, true}) {
    SCOPED_TRACE(persists);
    std::optional<SandboxId> id;
    auto expect = [&](auto&& deed) {
      int count = syncs_of(deed);
      EXPECT_EQ(count > 0, persists) << count;
    };
    expect([&] { id = create(persists ? "persistent" : "ephemeral")->id(); });
    expect([&] { ASSERT_TRUE(bed_.run(Pause::begin(find(*id))).ok()); });
    expect([&] { ASSERT_TRUE(bed_.run(Pause::end(find(*id))).ok()); });
    expect(
        [&] { ASSERT_TRUE(bed_.run(bed_.sandboxes().change(find(*id), {.ttl_ms = 5'000})).ok()); });
    expect([&] { ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, *id)).ok()); });
  }
}

TEST_F(PersistenceTest, ALaunchThatFailsLeavesTheFilesForTheNextStart) {
  SandboxId kept = create("persistent")->id();
  put(*find(kept), "files");
  bed_.driver->lose_power();
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  restart();
  EXPECT_EQ(find(kept)->state(), State::kFailed);
  sweep(bed_);
  EXPECT_TRUE(bed_.driver->kept.contains(kept)) << "the sweep takes nothing away";
  restart();
  ASSERT_EQ(find(kept)->state(), State::kRunning);
  EXPECT_EQ(bed_.driver->files(kept).contents().at("/tmp/a"), "files");
}

TEST_F(PersistenceTest, OneThatDidNotComeBackIsDeletedWithItsFiles) {
  SandboxId kept = create("persistent")->id();
  bed_.driver->lose_power();
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  restart();
  ASSERT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, kept)).ok());
  EXPECT_TRUE(bed_.driver->kept.empty());
}

}  // namespace
}  // namespace atl::sandbox
