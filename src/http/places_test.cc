#include "http/places.h"

#include <vector>

#include <gtest/gtest.h>

#include "http/peer_network.h"

namespace atl::http {
namespace {

struct PlacesTest : ::testing::Test {
  // What is taken is kept in `held`; whoever has to go leaves its number in `gone`.
  Places::Place* take(const std::string& address) {
    int number = taken++;
    auto place = places.take(address, [this, number] { gone.push_back(number); });
    held.push_back(std::move(place));
    return held.back().get();
  }

  Limits limits{.connections = 16,
                .connections_by_address = 4,
                .connections_by_network = 6,
                .connections_kept = 2};
  Places places{limits};
  int taken = 0;
  std::vector<int> gone;
  std::vector<std::unique_ptr<Places::Place>> held;
};

TEST_F(PlacesTest, AnAddressHasAShareAndItsOldestGoes) {
  for (int i = 0; i < 4; ++i) take("192.0.2.1");
  EXPECT_TRUE(gone.empty());
  take("192.0.2.1");
  EXPECT_EQ(gone, std::vector<int>({0}));
  take("192.0.2.2");
  EXPECT_EQ(gone, std::vector<int>({0})) << "another address has its own";
  EXPECT_EQ(places.taken(), 5u);
  EXPECT_EQ(places.dropped(), 1u);
}

TEST_F(PlacesTest, ANetworkHasAShareToo) {
  for (int i = 0; i < 6; ++i) take("192.0.2." + std::to_string(i));
  EXPECT_TRUE(gone.empty());
  take("192.0.2.77");
  EXPECT_EQ(gone, std::vector<int>({0}));
  take("192.0.3.1");
  EXPECT_EQ(gone.size(), 1u);
}

TEST_F(PlacesTest, WhoHasNoFinishedHeaderGoesFirstAndThenTheOldest) {
  auto* first = take("192.0.2.1");
  auto* second = take("192.0.2.1");
  take("192.0.2.1");
  take("192.0.2.1");
  first->set_busy();
  second->set_busy();
  second->set_waiting();  // again, so it waits for the shortest time
  take("192.0.2.1");
  take("192.0.2.1");
  take("192.0.2.1");
  EXPECT_EQ(gone, std::vector<int>({2, 3, 1}));
}

TEST_F(PlacesTest, WhoHasShownAKeyStaysAndCountsInNoShare) {
  for (int i = 0; i < 4; ++i) take("192.0.2.1")->set_known();
  for (int i = 0; i < 4; ++i) take("192.0.2.1");
  EXPECT_TRUE(gone.empty());
  take("192.0.2.1");
  EXPECT_EQ(gone, std::vector<int>({4}));
}

TEST_F(PlacesTest, SomeAreKeptForAddressesThatHaveShownAKey) {
  take("192.0.2.1")->set_known();
  for (int i = 0; i < 13; ++i) take("198.51." + std::to_string(i) + ".1");
  EXPECT_EQ(places.taken(), 14u);
  EXPECT_TRUE(gone.empty());
  take("203.0.113.1");
  EXPECT_EQ(gone, std::vector<int>({1})) << "strangers have what is not kept";
  take("192.0.2.1");
  take("192.0.2.1");
  EXPECT_EQ(gone.size(), 1u);
  EXPECT_EQ(places.taken(), 16u);
  take("192.0.2.1");
  EXPECT_EQ(gone, std::vector<int>({1, 2})) << "strangers go before those of a known address";
}

TEST_F(PlacesTest, WithoutStrangersThereIsNoRoom) {
  for (int i = 0; i < 16; ++i) {
    auto* place = take("192.0.2.1");
    ASSERT_TRUE(place) << i;
    place->set_known();
  }
  EXPECT_FALSE(take("192.0.2.1"));
  EXPECT_FALSE(take("203.0.113.1"));
  held.clear();
  EXPECT_EQ(places.taken(), 0u);
  EXPECT_TRUE(take("203.0.113.1"));
  EXPECT_TRUE(gone.empty());
}

TEST_F(PlacesTest, AStrangerDoesNotPutOutWhoComesFromAKnownAddress) {
  for (int i = 0; i < 12; ++i) take("192.0.2.1")->set_known();
  take("192.0.2.1");
  take("192.0.2.1");
  EXPECT_FALSE(take("203.0.113.1"));
  EXPECT_TRUE(gone.empty());
}

TEST_F(PlacesTest, WhoHasToGoIsNotCountedTwice) {
  take("192.0.2.1");
  auto* last = take("192.0.2.2");
  places.drop(1);
  EXPECT_EQ(gone, std::vector<int>({0}));
  held[0]->set_busy();
  held[0]->set_known();
  held[0].reset();
  EXPECT_EQ(places.taken(), 1u);
  last->set_known();
  places.drop(5);
  EXPECT_EQ(gone.size(), 1u);
}

TEST(PeerNetwork, IsWiderByWhatOnePartyMayHave) {
  EXPECT_EQ(wider_network("192.0.2.17"), "192.0.2.0/24");
  EXPECT_EQ(wider_network("2001:db8:1:2::/64"), "2001:db8:1::/48");
  EXPECT_EQ(wider_network("unknown"), "unknown");
}

}  // namespace
}  // namespace atl::http
