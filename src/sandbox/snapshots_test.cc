// Snapshots and forks with a fake isolate: the tree, what survives, and what is promised.
#include "sandbox/snapshots.h"

#include <gtest/gtest.h>

#include "sandbox/fork.h"
#include "sandbox/pause.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

class SnapshotBed : public TestBed {
 public:
  Snapshots& snapshots() {
    if (!snapshots_) snapshots_.emplace(sandboxes(), admission());
    return *snapshots_;
  }
  void restart() {
    snapshots_.reset();
    TestBed::restart();
  }

 private:
  std::optional<Snapshots> snapshots_;
};

void put_file(SnapshotBed& bed, const Sandbox& sandbox, const std::string& path,
              std::string content) {
  bed.driver->files(sandbox.id()).contents()[path] = std::move(content);
}

std::string file_of(SnapshotBed& bed, const Sandbox& sandbox, const std::string& path) {
  auto& contents = bed.driver->files(sandbox.id()).contents();
  return contents.contains(path) ? contents.at(path) : "none";
}

store::SnapshotRow cut(SnapshotBed& bed, std::shared_ptr<Sandbox> sandbox, std::string label = "") {
  auto kept = bed.run(bed.snapshots().cut(sandbox, {.label = std::move(label)}));
  EXPECT_TRUE(kept.ok());
  return kept->row;
}

Result<Created> create_from(SnapshotBed& bed, SnapshotId snapshot,
                            std::optional<uint64_t> disk_bytes = {}) {
  CreateSandbox request;
  request.snapshot = snapshot;
  request.disk_bytes = disk_bytes;
  return bed.run(bed.sandboxes().create(store::kLocalTenant, request));
}

Result<void> remove(SnapshotBed& bed, SnapshotId id, store::Orphans orphans) {
  return bed.run(bed.snapshots().remove(store::kLocalTenant, id, orphans));
}

std::vector<store::SnapshotRow> list(SnapshotBed& bed) {
  return bed.run(bed.snapshots().list(store::kLocalTenant, {})).value();
}

Task<bool> swept(Snapshots& snapshots) {
  co_await snapshots.sweep();
  co_return true;
}

TEST(Snapshots, KeepFilesThatASandboxIsMadeFrom) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/tmp/a", "first");
  store::SnapshotRow row = cut(bed, sandbox, "one");
  EXPECT_EQ(row.label, "one");
  EXPECT_EQ(row.bytes, 5u);
  EXPECT_FALSE(row.parent);
  put_file(bed, *sandbox, "/tmp/a", "second");
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, sandbox->id())).ok());
  auto made = create_from(bed, row.id);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(file_of(bed, *made->sandbox, "/tmp/a"), "first");
  EXPECT_EQ(made->sandbox->row().inherited_bytes, 5u);
  EXPECT_EQ(made->sandbox->row().template_name, "python");
}

TEST(Snapshots, MakeATree) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  store::SnapshotRow root = cut(bed, sandbox);
  store::SnapshotRow child = cut(bed, sandbox);
  EXPECT_EQ(child.parent, root.id);
  auto other = create_from(bed, root.id);
  ASSERT_TRUE(other.ok());
  store::SnapshotRow branch = cut(bed, other->sandbox);
  EXPECT_EQ(branch.parent, root.id);

  auto refused = remove(bed, root.id, store::Orphans::kRefuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "snapshot_has_children");
  EXPECT_EQ(list(bed).size(), 3u);
  ASSERT_TRUE(remove(bed, root.id, store::Orphans::kAdopt).ok());
  for (const store::SnapshotRow& row : list(bed)) EXPECT_FALSE(row.parent) << "its was none";
  EXPECT_FALSE(bed.driver->snapshots.contains(root.id));
  ASSERT_TRUE(remove(bed, branch.id, store::Orphans::kRefuse).ok());
  store::SnapshotRow next = cut(bed, other->sandbox);
  EXPECT_FALSE(next.parent) << "what it came from is gone";
  EXPECT_EQ(remove(bed, root.id, store::Orphans::kRefuse).error().reason(), "snapshot_not_found");
}

TEST(Snapshots, AreTheirTenantsAlone) {
  SnapshotBed bed;
  store::SnapshotRow row = cut(bed, bed.create());
  store::TenantId stranger = *store::TenantId::from_number(99);
  EXPECT_TRUE(bed.run(bed.snapshots().list(stranger, {}))->empty());
  auto found = bed.run(find_snapshot(bed.ledger(), stranger, row.id));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().reason(), "snapshot_not_found");
  EXPECT_FALSE(bed.run(bed.snapshots().remove(stranger, row.id, store::Orphans::kAdopt)).ok());
  EXPECT_EQ(list(bed).size(), 1u);
}

TEST(Snapshots, OfAPausedSandboxLeaveItPaused) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  ASSERT_TRUE(bed.run(Pause::begin(sandbox)).ok());
  cut(bed, sandbox);
  EXPECT_EQ(sandbox->state(), State::kPaused);
}

TEST(Snapshots, WhatTheyHoldIsPromisedUntilTheyAreGone) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/tmp/a", std::string(1000, 'x'));
  uint64_t before = bed.admission().promised().disk_bytes;
  size_t sandboxes = bed.admission().promised().sandboxes;
  store::SnapshotRow row = cut(bed, sandbox);
  EXPECT_EQ(bed.admission().promised().disk_bytes, before + 1000);
  EXPECT_EQ(bed.admission().promised().sandboxes, sandboxes) << "it is none";
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  ASSERT_TRUE(bed.run(bed.snapshots().adopt()).ok());
  EXPECT_EQ(bed.admission().promised().disk_bytes, before + 1000);
  ASSERT_TRUE(remove(bed, row.id, store::Orphans::kRefuse).ok());
  EXPECT_EQ(bed.admission().promised().disk_bytes, before);
}

TEST(Snapshots, LimitsCountWhatASandboxBeginsWith) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/tmp/a", std::string(3 << 20, 'x'));
  store::SnapshotRow row = cut(bed, sandbox);
  auto refused = create_from(bed, row.id, (3 << 20) + 1000);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().field(), "limits.disk_bytes");
  auto made = create_from(bed, row.id, 4 << 20);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(bed.driver->limits(made->sandbox->id()).inherited_bytes, 3u << 20);
  auto changed = bed.run(bed.sandboxes().change(made->sandbox, {.disk_bytes = 2 << 20}));
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().field(), "limits.disk_bytes");
}

void install_machine(SnapshotBed& bed) {
  std::string folder = bed.directory() + "/templates/microvm";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(replace_file(folder + "/template.toml",
                           "name = \"microvm\"\nkind = \"monitor\"\n[image]\n"
                           "debian = { suite = \"bookworm\", packages = [\"a-package\"] }\n",
                           0644)
                  .ok());
  ASSERT_TRUE(replace_file(folder + "/image", std::string(64, 'c') + "\n", 0644).ok());
}

std::shared_ptr<Sandbox> create_machine(SnapshotBed& bed) {
  install_machine(bed);
  CreateSandbox request = bed.create_request();
  request.isolation = store::Isolation::kMicrovm;
  auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  EXPECT_TRUE(created.ok());
  return created->sandbox;
}

TEST(Snapshots, OfAMachineAreCutWhileItsFilesStandStill) {
  SnapshotBed bed;
  auto machine = create_machine(bed);
  put_file(bed, *machine, "/tmp/a", "kept");
  store::SnapshotRow row = cut(bed, machine);
  bed.settle();
  EXPECT_EQ(bed.driver->files(machine->id()).open_channels(), 0u) << "they go on";
  EXPECT_EQ(row.isolation, "microvm");
  CreateSandbox request;
  request.snapshot = row.id;
  request.isolation = store::Isolation::kJail;  // at least
  auto made = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(file_of(bed, *made->sandbox, "/tmp/a"), "kept");
  EXPECT_TRUE(bed.driver->machines.contains(made->sandbox->id()));
  request.disk_bytes = row.disk_bytes * 2;
  auto larger = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  ASSERT_FALSE(larger.ok());
  EXPECT_EQ(larger.error().field(), "limits.disk_bytes");
  auto forked = bed.run(fork_sandbox(bed.sandboxes(), bed.snapshots(), machine, {.count = 1}));
  ASSERT_TRUE(forked.ok());
  EXPECT_EQ(forked->sandboxes[0]->row().isolation, "microvm");
}

TEST(Snapshots, OfAJailAreRefusedBehindAStrongerWall) {
  SnapshotBed bed;
  install_machine(bed);
  store::SnapshotRow row = cut(bed, bed.create());
  CreateSandbox request;
  request.snapshot = row.id;
  request.isolation = store::Isolation::kMicrovm;
  auto made = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().reason(), "not_behind_this_wall");
  EXPECT_EQ(made.error().field(), "isolation");
}

TEST(Snapshots, OfAMachineThatWroteMeanwhileAreNone) {
  SnapshotBed bed;
  auto machine = create_machine(bed);
  put_file(bed, *machine, "/restless", "");
  auto kept = bed.run(bed.snapshots().cut(machine, {}));
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().reason(), "file_timeout");
  EXPECT_TRUE(bed.driver->snapshots.empty());
  EXPECT_TRUE(list(bed).empty());
}

TEST(Snapshots, OfAKernelThatDoesNotWriteItsFilesDownAreRefused) {
  SnapshotBed bed;
  auto machine = create_machine(bed);
  put_file(bed, *machine, "/stubborn", "");
  auto kept = bed.run(bed.snapshots().cut(machine, {}));
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().reason(), "not_behind_this_wall");
  EXPECT_TRUE(bed.driver->snapshots.empty());
  EXPECT_TRUE(list(bed).empty());
}

TEST(Snapshots, OfAPausedMachineAreRefused) {
  SnapshotBed bed;
  auto machine = create_machine(bed);
  ASSERT_TRUE(bed.run(Pause::begin(machine)).ok());
  auto kept = bed.run(bed.snapshots().cut(machine, {}));
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().reason(), "sandbox_paused");
}

TEST(Snapshots, FilesWithoutARowGoAtTheNextStartAndRowsStay) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  store::SnapshotRow kept = cut(bed, sandbox);
  SnapshotId stray = SnapshotId::draw();
  bed.driver->snapshots.emplace(stray, isolate::FakeFiles());
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.snapshots().adopt()).ok());
  EXPECT_FALSE(bed.driver->snapshots.contains(stray));
  EXPECT_TRUE(bed.driver->snapshots.contains(kept.id));
  EXPECT_EQ(list(bed).size(), 1u);
  bed.driver->snapshots.clear();
  auto lost = create_from(bed, kept.id);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().reason(), "snapshot_lost");
}

TEST(Fork, MakesSandboxesThatShareNothingButTheirBeginning) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/tmp/a", "shared");
  auto hanging = bed.start_exec(*sandbox, {"hang"});
  auto forked = bed.run(fork_sandbox(bed.sandboxes(), bed.snapshots(), sandbox, {.count = 3}));
  ASSERT_TRUE(forked.ok());
  ASSERT_EQ(forked->sandboxes.size(), 3u);
  ASSERT_EQ(forked->not_carried.size(), 1u);
  EXPECT_EQ(forked->not_carried[0].id, hanging->id().string());
  put_file(bed, *forked->sandboxes[0], "/tmp/a", "own");
  EXPECT_EQ(file_of(bed, *forked->sandboxes[1], "/tmp/a"), "shared");
  EXPECT_EQ(file_of(bed, *sandbox, "/tmp/a"), "shared");
  EXPECT_NE(forked->sandboxes[0]->row().nonce, forked->sandboxes[1]->row().nonce);
  EXPECT_FALSE(forked->sandboxes[0]->row().name);
  EXPECT_TRUE(list(bed).empty()) << "a fork keeps no snapshot";
  EXPECT_TRUE(bed.driver->snapshots.empty());
  store::SnapshotRow later = cut(bed, forked->sandboxes[0]);
  EXPECT_FALSE(later.parent);
}

TEST(Fork, IsAllOrNothing) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  auto forked = bed.run(fork_sandbox(bed.sandboxes(), bed.snapshots(), sandbox, {.count = 20}));
  ASSERT_FALSE(forked.ok()) << "the budget of the bed is ten";
  EXPECT_EQ(forked.error().reason(), "no_capacity");
  bed.settle();
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
  EXPECT_TRUE(bed.driver->snapshots.empty());
  EXPECT_TRUE(list(bed).empty());
}

TEST(Rollback, PutsFilesBackAndCanBeUndone) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  SandboxId id = sandbox->id();
  put_file(bed, *sandbox, "/tmp/a", "first");
  store::SnapshotRow first = cut(bed, sandbox);
  put_file(bed, *sandbox, "/tmp/a", "second");
  auto hanging = bed.start_exec(*sandbox, {"hang"});
  uint64_t promised = bed.admission().promised().memory_bytes;
  auto done = bed.run(bed.snapshots().roll_back(sandbox, first.id));
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->sandbox->id(), id);
  EXPECT_EQ(bed.sandboxes().find(store::kLocalTenant, id), done->sandbox);
  EXPECT_EQ(file_of(bed, *done->sandbox, "/tmp/a"), "first");
  EXPECT_EQ(done->sandbox->row().generation, 2u);
  EXPECT_NE(done->sandbox->row().nonce, sandbox->row().nonce);
  EXPECT_EQ(hanging->row().verdict, "sandbox_gone");
  ASSERT_EQ(done->not_carried.size(), 1u);
  EXPECT_EQ(bed.admission().promised().memory_bytes, promised);
  EXPECT_EQ(bed.run_exec(*done->sandbox, {"echo", "on"}).verdict, "ok");
  auto undone = bed.run(bed.snapshots().roll_back(done->sandbox, *done->undo));
  ASSERT_TRUE(undone.ok());
  EXPECT_EQ(file_of(bed, *undone->sandbox, "/tmp/a"), "second");
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, id)).ok());
  bed.run(swept(bed.snapshots()));
  ASSERT_EQ(list(bed).size(), 1u) << "what was asked for stays";
  EXPECT_EQ(list(bed)[0].id, first.id);
}

TEST(Rollback, ThatACrashCutShortIsFinishedAtTheNextStart) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/tmp/a", "first");
  store::SnapshotRow first = cut(bed, sandbox);
  put_file(bed, *sandbox, "/tmp/a", "second");
  store::SandboxRow row = sandbox->row();
  row.restoring = true;
  row.snapshot = first.id;
  row.generation = 2;
  auto mark = [row](store::Catalog& catalog) { return catalog.sandboxes().set_restoring(row); };
  ASSERT_TRUE(bed.run(bed.ledger().run(mark)).ok());
  SandboxId id = sandbox->id();
  sandbox.reset();
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  auto found = bed.sandboxes().find(store::kLocalTenant, id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state(), State::kRunning);
  EXPECT_FALSE(found->row().restoring);
  EXPECT_EQ(file_of(bed, *found, "/tmp/a"), "first");
}

TEST(Rollback, IsRefusedToAnotherLineAndToWhatIsLost) {
  SnapshotBed bed;
  auto sandbox = bed.create();
  store::SnapshotRow foreign = cut(bed, bed.create());
  auto refused = bed.run(bed.snapshots().roll_back(sandbox, foreign.id));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "snapshot_of_another_line");
  store::SnapshotRow own = cut(bed, sandbox);
  bed.driver->snapshots.clear();
  auto lost = bed.run(bed.snapshots().roll_back(sandbox, own.id));
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().reason(), "snapshot_lost");
  EXPECT_EQ(sandbox->state(), State::kRunning);
  EXPECT_EQ(list(bed).size(), 2u) << "nothing was kept for it";
}

TEST(Checkpoint, IsCutBeforeEachExecAndTheOldestGo) {
  SnapshotBed bed;
  CreateSandbox request = bed.create_request();
  request.checkpoint = "each";
  bed.snapshots();
  auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  ASSERT_TRUE(created.ok());
  put_file(bed, *created->sandbox, "/tmp/a", "before");
  bed.run_exec(*created->sandbox, {"echo", "one"});
  ASSERT_EQ(list(bed).size(), 1u);
  EXPECT_EQ(list(bed)[0].reason, "checkpoint");
  SnapshotId oldest = list(bed)[0].id;
  // The clock stands still: all are of one millisecond.
  for (size_t i = 0; i < kMaxCheckpoints; ++i) bed.run_exec(*created->sandbox, {"echo", "more"});
  EXPECT_EQ(list(bed).size(), kMaxCheckpoints);
  EXPECT_FALSE(bed.driver->snapshots.contains(oldest));
}

}  // namespace
}  // namespace atl::sandbox
