// Volumes with a fake isolate: who may have them, and what survives.
#include "sandbox/volumes.h"

#include <gtest/gtest.h>

#include "sandbox/fork.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr uint64_t kMiB = 1 << 20;

Volumes& volumes(TestBed& bed) { return *bed.sandboxes().services().volumes; }

Result<store::VolumeRow> make(TestBed& bed, const std::string& name, uint64_t bytes = kMiB) {
  return bed.run(volumes(bed).create(store::kLocalTenant, name, bytes));
}

Result<void> remove(TestBed& bed, const std::string& name) {
  return bed.run(volumes(bed).remove(store::kLocalTenant, name));
}

Result<Created> create_with(TestBed& bed, std::vector<WantedVolume> wanted) {
  CreateSandbox request = bed.create_request();
  request.volumes = std::move(wanted);
  return bed.run(bed.sandboxes().create(store::kLocalTenant, std::move(request)));
}

void drop(TestBed& bed, const Sandbox& sandbox) {
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, sandbox.id())).ok());
}

TEST(Volumes, HaveNamesAndOneOfEach) {
  TestBed bed;
  auto row = make(bed, "cache");
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(bed.driver->volumes.at(row->id), kMiB);
  EXPECT_EQ(make(bed, "cache").error().reason(), "volume_exists");
  EXPECT_EQ(volumes(bed).find(store::kLocalTenant, "none").error().reason(), "volume_not_found");
  auto other = store::TenantId::from_number(7);
  EXPECT_EQ(volumes(bed).find(*other, "cache").error().reason(), "volume_not_found");
  EXPECT_EQ(volumes(bed).list(store::kLocalTenant).size(), 1u);
  ASSERT_TRUE(remove(bed, "cache").ok());
  EXPECT_TRUE(bed.driver->volumes.empty());
  EXPECT_EQ(remove(bed, "cache").error().reason(), "volume_not_found");
  EXPECT_EQ(bed.admission().promised().disk_bytes, 0u) << "what was promised is given back";
}

TEST(Volumes, OneWritesOrManyRead) {
  TestBed bed;
  ASSERT_TRUE(make(bed, "cache").ok());
  auto writer = create_with(bed, {{"cache", "/srv/cache", false}});
  ASSERT_TRUE(writer.ok());
  auto places = bed.driver->places.at(writer->sandbox->id());
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].path, "/srv/cache");
  for (bool read_only : {false, true}) {
    auto refused = create_with(bed, {{"cache", "/x", read_only}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().reason(), "volume_in_use");
  }
  EXPECT_EQ(remove(bed, "cache").error().reason(), "volume_in_use");
  drop(bed, *writer->sandbox);
  auto reader = create_with(bed, {{"cache", "/x", true}});
  auto second = create_with(bed, {{"cache", "/y", true}});
  ASSERT_TRUE(reader.ok() && second.ok());
  EXPECT_EQ(create_with(bed, {{"cache", "/x", false}}).error().reason(), "volume_in_use");
  EXPECT_EQ(volumes(bed).find(store::kLocalTenant, "cache")->users.size(), 2u);
  drop(bed, *reader->sandbox);
  drop(bed, *second->sandbox);
  EXPECT_TRUE(remove(bed, "cache").ok());
}

TEST(Volumes, ALaunchThatFailsGivesThemBack) {
  TestBed bed;
  ASSERT_TRUE(make(bed, "cache").ok());
  bed.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  EXPECT_FALSE(create_with(bed, {{"cache", "/x", false}}).ok());
  EXPECT_TRUE(create_with(bed, {{"cache", "/x", false}}).ok());
}

TEST(Volumes, SurviveARestartWithWhoHasThem) {
  TestBed bed;
  auto row = make(bed, "cache");
  auto writer = create_with(bed, {{"cache", "/srv/cache", false}});
  ASSERT_TRUE(row.ok() && writer.ok());
  SandboxId id = writer->sandbox->id();
  writer = Error(Code::kCancelled, "forgotten");
  bed.driver->volumes.emplace(VolumeId::draw(), kMiB);  // of a create that was not acknowledged
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  EXPECT_EQ(bed.driver->volumes.size(), 1u);
  EXPECT_EQ(create_with(bed, {{"cache", "/x", true}}).error().reason(), "volume_in_use");
  auto found = bed.sandboxes().find(store::kLocalTenant, id);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->row().volumes,
            (std::vector<store::VolumeUse>{{row->id, "cache", "/srv/cache", false}}));
  drop(bed, *found);
  EXPECT_TRUE(remove(bed, "cache").ok());
}

TEST(Volumes, AForkHasNoneAndSaysSo) {
  TestBed bed;
  Snapshots snapshots(bed.sandboxes(), bed.admission());
  ASSERT_TRUE(make(bed, "cache").ok());
  auto writer = create_with(bed, {{"cache", "/srv/cache", false}});
  ASSERT_TRUE(writer.ok());
  auto forked = bed.run(fork_sandbox(bed.sandboxes(), snapshots, writer->sandbox, {}));
  ASSERT_TRUE(forked.ok());
  ASSERT_EQ(forked->not_carried.size(), 1u);
  EXPECT_EQ(forked->not_carried[0].what, NotCarried::What::kVolume);
  EXPECT_EQ(forked->not_carried[0].id, "cache");
  EXPECT_TRUE(forked->sandboxes.at(0)->row().volumes.empty());
}

}  // namespace
}  // namespace atl::sandbox
