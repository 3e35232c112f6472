#include "base/bytes.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(Bytes, NumbersAreLittleEndian) {
  std::string out;
  ByteWriter writer(out);
  writer.u8(0x01);
  writer.u16(0x0302);
  writer.u32(0x07060504);
  writer.u64(0x0f0e0d0c0b0a0908);
  EXPECT_EQ(out, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f");
}

TEST(Bytes, ReaderGivesBackWhatWriterPut) {
  std::string out;
  ByteWriter writer(out);
  writer.u8(255);
  writer.u16(65'535);
  writer.u32(4'294'967'295);
  writer.u64(18'446'744'073'709'551'615ull);
  writer.text(std::string_view("a\0b", 3));
  writer.bytes("tail");

  ByteReader reader(out);
  EXPECT_EQ(reader.u8(), 255);
  EXPECT_EQ(reader.u16(), 65'535);
  EXPECT_EQ(reader.u32(), 4'294'967'295);
  EXPECT_EQ(reader.u64(), 18'446'744'073'709'551'615ull);
  EXPECT_EQ(reader.text(3), std::string_view("a\0b", 3));
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.rest(), "tail");
  EXPECT_TRUE(reader.done());
}

TEST(Bytes, NumberCutShortTurnsTheReaderBadAndGivesZero) {
  ByteReader reader(std::string_view("\xff\xff\xff", 3));
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, BadReaderStaysBad) {
  ByteReader reader(std::string_view("\x01\x02\x03", 3));
  reader.u32();
  EXPECT_EQ(reader.u8(), 0) << "bytes that are there must not be handed out after a failure";
  EXPECT_EQ(reader.rest(), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.done());
}

TEST(Bytes, TextLongerThanItsLimitIsRefused) {
  std::string out;
  ByteWriter(out).text("four");
  ByteReader fits(out);
  EXPECT_EQ(fits.text(4), "four");
  EXPECT_TRUE(fits.done());
  ByteReader too_long(out);
  EXPECT_EQ(too_long.text(3), "");
  EXPECT_FALSE(too_long.ok());
}

TEST(Bytes, TextThatClaimsMoreThanIsThereIsRefused) {
  std::string out;
  ByteWriter writer(out);
  writer.u32(0xffffffff);
  writer.bytes("abc");
  ByteReader reader(out);
  EXPECT_EQ(reader.text(SIZE_MAX), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, LeftOversAreNotDone) {
  ByteReader reader("ab");
  reader.u8();
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.done());
}

}  // namespace
}  // namespace atl
