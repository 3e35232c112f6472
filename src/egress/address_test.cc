#include "egress/address.h"

#include <gtest/gtest.h>

#include "egress/synthetic.h"

namespace atl::egress {
namespace {

AddressClass class_of(std::string_view text) {
  auto address = Address::parse(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address ? address->classify() : AddressClass::kPublic;
}

TEST(Address, OnlyPlainFormsAreAddresses) {
  for (const char* text :
       {"0", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "1.2.3", "1.2.3.4.", "1.2.3.256",
        "01.2.3.4", " 1.2.3.4", "1.2.3.4 ", "fe80::1%lo", "[::1]", "::1::", "1.2.3.4/8", ""})
    EXPECT_FALSE(Address::parse(text).has_value()) << text;
  EXPECT_EQ(Address::parse("1.2.3.4")->string(), "1.2.3.4");
  EXPECT_EQ(Address::parse("2606:4700:0::1")->string(), "2606:4700::1");
}

TEST(Address, KnowsWhatIsNotTheInternet) {
  struct Case {
    const char* text;
    AddressClass wanted;
  };
  for (const Case& one : {
           Case{"0.0.0.0", AddressClass::kUnspecified},
           Case{"127.0.0.1", AddressClass::kLoopback},
           Case{"127.255.255.255", AddressClass::kLoopback},
           Case{"10.1.2.3", AddressClass::kPrivate},
           Case{"172.16.0.1", AddressClass::kPrivate},
           Case{"172.31.255.255", AddressClass::kPrivate},
           Case{"192.168.1.1", AddressClass::kPrivate},
           Case{"100.64.0.1", AddressClass::kShared},
           Case{"169.254.1.1", AddressClass::kLinkLocal},
           Case{"169.254.169.254", AddressClass::kMetadata},
           Case{"100.100.100.200", AddressClass::kMetadata},
           Case{"168.63.129.16", AddressClass::kMetadata},
           Case{"fd00:ec2::254", AddressClass::kMetadata},
           Case{"224.0.0.251", AddressClass::kMulticast},
           Case{"255.255.255.255", AddressClass::kBroadcast},
           Case{"240.0.0.1", AddressClass::kReserved},
           Case{"198.18.0.1", AddressClass::kReserved},
           Case{"::", AddressClass::kUnspecified},
           Case{"::1", AddressClass::kLoopback},
           Case{"::127.0.0.1", AddressClass::kEmbedded},
           Case{"::ffff:127.0.0.1", AddressClass::kEmbedded},
           Case{"::ffff:8.8.8.8", AddressClass::kEmbedded},
           Case{"64:ff9b::a00:1", AddressClass::kEmbedded},
           Case{"2002:7f00:1::", AddressClass::kEmbedded},
           Case{"2001:0:1:2::", AddressClass::kEmbedded},
           Case{"2606:4700::5efe:a00:1", AddressClass::kEmbedded},
           Case{"fe80::1", AddressClass::kLinkLocal},
           Case{"fc00::1", AddressClass::kPrivate},
           Case{"fd00:a701::1", AddressClass::kPrivate},
           Case{"ff02::1", AddressClass::kMulticast},
           Case{"2001:db8::1", AddressClass::kReserved},
           Case{"4000::1", AddressClass::kReserved},
           Case{"8.8.8.8", AddressClass::kPublic},
           Case{"172.32.0.1", AddressClass::kPublic},
           Case{"2606:4700::1111", AddressClass::kPublic},
       })
    EXPECT_EQ(class_of(one.text), one.wanted) << one.text;
}

TEST(Cidr, IsExactAtItsEdges) {
  Cidr range = *Cidr::parse("10.1.16.0/20");
  EXPECT_TRUE(range.contains(*Address::parse("10.1.16.0")));
  EXPECT_TRUE(range.contains(*Address::parse("10.1.31.255")));
  EXPECT_FALSE(range.contains(*Address::parse("10.1.32.0")));
  EXPECT_FALSE(range.contains(*Address::parse("10.1.15.255")));
  EXPECT_TRUE(Cidr::parse("255.255.255.255/32")->contains(*Address::parse("255.255.255.255")));
  EXPECT_TRUE(Cidr::parse("0.0.0.0/0")->contains(*Address::parse("255.255.255.255")));
  // A mapped address is no IPv4 address.
  EXPECT_FALSE(Cidr::parse("0.0.0.0/0")->contains(*Address::parse("::ffff:1.2.3.4")));
  for (const char* text :
       {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1", "a/8"})
    EXPECT_FALSE(Cidr::parse(text).has_value()) << text;
}

TEST(Synthetic, NumbersAndAddressesAreTheSame) {
  for (uint32_t number : {0u, 1u, 255u, 4095u, kMaxSynthetic - 1}) {
    EXPECT_EQ(synthetic_number(synthetic_v4(number)), number);
    EXPECT_EQ(synthetic_number(synthetic_v6(number)), number);
  }
  EXPECT_EQ(Address::v4(synthetic_v4(0)).string(), "198.18.1.0");
  EXPECT_EQ(Address::v4(synthetic_v4(kMaxSynthetic - 1)).string(), "198.19.255.255");
  EXPECT_EQ(Address::v6(synthetic_v6(0)).string(), "fd00:a701::100");
  for (const char* other : {"198.18.0.1", "198.17.1.1", "198.20.0.0", "1.2.3.4", "fd00:a701::1",
                            "fd00:a701:0:1::100", "fd00:a702::100"})
    EXPECT_FALSE(synthetic_number(Address::parse(other)->bytes())) << other;
}

}  // namespace
}  // namespace atl::egress
