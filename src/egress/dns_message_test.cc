#include "egress/dns_message.h"

#include <gtest/gtest.h>

#include "egress/synthetic.h"

namespace atl::egress {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes question(std::vector<std::string> labels, uint16_t type = 1) {
  Bytes bytes = {0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0};
  for (const std::string& label : labels) {
    bytes.push_back(static_cast<unsigned char>(label.size()));
    bytes.insert(bytes.end(), label.begin(), label.end());
  }
  for (int value : {0, type >> 8, type & 0xff, 0, 1})
    bytes.push_back(static_cast<unsigned char>(value));
  return bytes;
}

Bytes with_opt(Bytes bytes) {
  bytes[11] = 1;
  for (unsigned char byte : {0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0}) bytes.push_back(byte);
  return bytes;
}

TEST(DnsMessage, ReadsOneQuestion) {
  for (const Bytes& bytes :
       {question({"PyPI", "org"}, 28), with_opt(question({"PyPI", "org"}, 28))}) {
    auto parsed = parse_dns_question(bytes);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->id, 0x1234);
    EXPECT_EQ(parsed->name, "PyPI.org");
    EXPECT_TRUE(parsed->asks_for(RecordType::kAaaa));
    EXPECT_TRUE(parsed->recursion_desired);
  }
}

TEST(DnsMessage, RefusesEverythingElse) {
  auto refuse = [](Bytes bytes) { EXPECT_FALSE(parse_dns_question(bytes).ok()); };
  Bytes good = question({"a", "b"});
  for (size_t length = 0; length < good.size(); ++length)
    refuse(Bytes(good.begin(), good.begin() + static_cast<long>(length)));
  auto changed = [&](size_t at, unsigned char value) {
    Bytes bytes = good;
    bytes[at] = value;
    return bytes;
  };
  refuse(changed(2, 0x81));   // an answer
  refuse(changed(2, 0x28));   // another operation
  refuse(changed(2, 0x03));   // cut off
  refuse(changed(5, 2));      // two questions
  refuse(changed(7, 1));      // an answer in it
  refuse(changed(11, 1));     // a record that is not there
  refuse(changed(12, 0xc0));  // a compressed name
  Bytes longer = good;
  longer.push_back(0);
  refuse(longer);
  refuse(question({"a.b", "c"}));
  refuse(question({std::string(64, 'a')}));
  std::string label(63, 'a');
  refuse(question({label, label, label, label}));
  Bytes signed_one = with_opt(good);
  signed_one[good.size() + 2] = 250;
  refuse(signed_one);
}

TEST(DnsMessage, AnswersWithTheAddress) {
  auto parsed = parse_dns_question(with_opt(question({"pypi", "org"})));
  Address address = Address::v4(synthetic_v4(0));
  std::string answer = make_dns_answer(*parsed, DnsStatus::kOk, &address);
  ASSERT_EQ(answer.size(), 12 + 14 + 16u);
  EXPECT_EQ(answer.substr(0, 12), std::string("\x12\x34\x81\x80\0\1\0\1\0\0\0\0", 12));
  EXPECT_EQ(answer.substr(12, 14), parsed->wire);
  EXPECT_EQ(answer.substr(answer.size() - 6), std::string("\0\4\xc6\x12\x01\x00", 6));
  std::string none = make_dns_answer(*parsed, DnsStatus::kNoSuchName);
  EXPECT_EQ(none.substr(0, 12), std::string("\x12\x34\x81\x83\0\1\0\0\0\0\0\0", 12));
}

TEST(DnsMessage, NeverAnswersAnAnswer) {
  EXPECT_TRUE(make_format_error(Bytes{1, 2, 0}).has_value());
  EXPECT_FALSE(make_format_error(Bytes{1, 2, 0x80}).has_value());
  EXPECT_FALSE(make_format_error(Bytes{1, 2}).has_value());
}

}  // namespace
}  // namespace atl::egress
