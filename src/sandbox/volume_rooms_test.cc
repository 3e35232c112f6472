// The files of volumes without a sandbox of one's own, with a fake isolate.
#include "sandbox/volume_rooms.h"

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using Purpose = VolumeRooms::Purpose;
using Visit = VolumeRooms::Visit;

class VolumeRoomsTest : public testing::Test {
 protected:
  VolumeRoomsTest() {
    auto made = bed_.run(volumes().create(store::kLocalTenant, "data", 1 << 20));
    EXPECT_TRUE(made.ok());
  }

  Volumes& volumes() { return *bed_.sandboxes().services().volumes; }
  ShownVolume volume() { return *volumes().find(store::kLocalTenant, "data"); }
  Result<Visit> enter(Purpose purpose = Purpose::kWrite) {
    return bed_.run(rooms_.enter(volume(), purpose));
  }
  Result<void> leave(Visit visit) { return bed_.run(left(rooms_, std::move(visit))); }
  static Task<Result<void>> left(VolumeRooms& rooms, Visit visit) {
    co_await rooms.leave(std::move(visit));
    co_return Result<void>();
  }
  static Task<Result<void>> waited(VolumeRooms& rooms) {
    std::vector<WantedVolume> wanted;
    wanted.push_back({"data", "/x"});
    co_await rooms.wait_empty(store::kLocalTenant, std::move(wanted));
    co_return Result<void>();
  }
  Result<Created> create(bool read_only) {
    CreateSandbox request = bed_.create_request();
    request.volumes.push_back({"data", "/srv/data", read_only});
    return bed_.run(bed_.sandboxes().create(store::kLocalTenant, std::move(request)));
  }

  TestBed bed_;
  VolumeRooms rooms_{bed_.sandboxes(), "python"};
};

TEST_F(VolumeRoomsTest, ARoomIsSharedAndGoneWithTheLast) {
  auto first = enter();
  ASSERT_TRUE(first.ok());
  auto second = enter(Purpose::kRead);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->sandbox, second->sandbox);
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u);
  ASSERT_TRUE(leave(*first).ok());
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u);
  ASSERT_TRUE(leave(*second).ok());
  EXPECT_TRUE(bed_.sandboxes().all().empty());
  EXPECT_TRUE(volume().users.empty());
}

TEST_F(VolumeRoomsTest, ManyAtOnceMakeOneRoom) {
  std::vector<Visit> visits;
  auto visit = [&]() -> Task<void> {
    auto entered = co_await rooms_.enter(volume(), Purpose::kWrite);
    if (entered) visits.push_back(std::move(*entered));
  };
  // detached: owned by this test, which waits for each before it looks at `visits`
  for (int i = 0; i < 3; ++i) spawn(bed_.context().get_executor(), visit());
  auto last = enter();
  ASSERT_TRUE(last.ok());
  bed_.settle();
  visits.push_back(*last);
  ASSERT_EQ(visits.size(), 4u);
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u);
  for (Visit& one : visits) ASSERT_TRUE(leave(one).ok());
  EXPECT_TRUE(bed_.sandboxes().all().empty());
}

TEST_F(VolumeRoomsTest, WhoHasItIsVisited) {
  auto writer = create(false);
  ASSERT_TRUE(writer.ok());
  auto visit = enter();
  ASSERT_TRUE(visit.ok());
  EXPECT_EQ(visit->sandbox, writer->sandbox);
  EXPECT_EQ(visit->path, "/srv/data");
  ASSERT_TRUE(leave(*visit).ok());
  EXPECT_EQ(bed_.sandboxes().all().size(), 1u) << "it is not ours to remove";
}

TEST_F(VolumeRoomsTest, WhoOnlyReadsIsNoPlaceToWrite) {
  ASSERT_TRUE(create(true).ok());
  EXPECT_TRUE(enter(Purpose::kRead).ok());
  auto refused = enter(Purpose::kWrite);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "volume_in_use");
}

TEST_F(VolumeRoomsTest, WhoMountsItWaitsForTheRoom) {
  auto visit = enter();
  ASSERT_TRUE(visit.ok());
  bool waits = true;
  auto wait = [&]() -> Task<void> {
    (void)co_await waited(rooms_);
    waits = false;
  };
  // detached: owned by this test; ends with the room
  spawn(bed_.context().get_executor(), wait());
  bed_.settle();
  EXPECT_TRUE(waits);
  ASSERT_TRUE(leave(*visit).ok());
  bed_.settle();
  EXPECT_FALSE(waits);
}

}  // namespace
}  // namespace atl::sandbox
