#include "egress/dns_message.h"

#include <optional>

#include "egress/host_name.h"

namespace atl::egress {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr uint16_t kResponse = 0x8000, kOperationMask = 0x7800, kTruncated = 0x0200;
constexpr uint16_t kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080;
constexpr uint16_t kOptType = 41;
constexpr uint16_t kNamePointer = 0xc000 | kHeaderBytes;  // at the question's name
constexpr uint16_t kInternet = 1;

Error malformed_message(const char* what) { return Error(Code::kInvalid, what); }

class Reader {
 public:
  explicit Reader(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  bool has(size_t count) const { return bytes_.size() - at_ >= count; }
  size_t at() const { return at_; }
  bool done() const { return at_ == bytes_.size(); }
  void skip(size_t count) { at_ += count; }
  uint8_t u8() { return bytes_[at_++]; }
  uint16_t u16() {
    auto value = static_cast<uint16_t>(bytes_[at_] << 8 | bytes_[at_ + 1]);
    at_ += 2;
    return value;
  }

 private:
  std::span<const unsigned char> bytes_;
  size_t at_ = 0;
};

void put_u16(std::string& out, uint16_t value) {
  out.push_back(static_cast<char>(value >> 8));
  out.push_back(static_cast<char>(value & 0xff));
}

Result<std::string> read_name(Reader& reader) {
  std::string name;
  while (true) {
    if (!reader.has(1)) return malformed_message("the name has no end");
    uint8_t length = reader.u8();
    if (length == 0) return name;
    if (length > kMaxLabelBytes)
      return malformed_message("the name is compressed or a label is too long");
    if (!reader.has(length)) return malformed_message("the name has no end");
    if (!name.empty()) name.push_back('.');
    for (uint8_t i = 0; i < length; ++i) {
      char c = static_cast<char>(reader.u8());
      // Or two labels could be made to look like three.
      if (c == '.') return malformed_message("a label has a dot in it");
      name.push_back(c);
    }
    if (name.size() > kMaxNameBytes) return malformed_message("the name is too long");
  }
}

Result<void> skip_opt(Reader& reader) {
  if (!reader.has(11) || reader.u8() != 0) return malformed_message("a record that is no OPT");
  if (reader.u16() != kOptType) return malformed_message("a record that is no OPT");
  reader.skip(6);
  uint16_t length = reader.u16();
  if (!reader.has(length)) return malformed_message("the OPT record has no end");
  reader.skip(length);
  return {};
}

std::string make_header(uint16_t id, bool recursion, DnsStatus status, uint16_t questions,
                        uint16_t answers) {
  std::string out;
  put_u16(out, id);
  uint16_t flags = kResponse | kRecursionAvailable | static_cast<uint16_t>(status);
  if (recursion) flags |= kRecursionDesired;
  put_u16(out, flags);
  put_u16(out, questions);
  put_u16(out, answers);
  put_u16(out, 0);
  put_u16(out, 0);
  return out;
}

}  // namespace

Result<DnsQuestion> parse_dns_question(std::span<const unsigned char> message) {
  if (message.size() < kHeaderBytes) return malformed_message("the message is too short");
  if (message.size() > kMaxQuestionBytes) return malformed_message("the message is too long");
  Reader reader(message);
  DnsQuestion question;
  question.id = reader.u16();
  uint16_t flags = reader.u16();
  if ((flags & (kResponse | kOperationMask | kTruncated)) != 0)
    return malformed_message("not a query");
  question.recursion_desired = (flags & kRecursionDesired) != 0;
  uint16_t questions = reader.u16(), answers = reader.u16();
  uint16_t authorities = reader.u16(), additional = reader.u16();
  if (questions != 1) return malformed_message("not one question");
  if (answers != 0 || authorities != 0 || additional > 1)
    return malformed_message("records in a question");
  ATOLL_TRY(question.name, read_name(reader));
  if (!reader.has(4)) return malformed_message("the question has no end");
  question.type = reader.u16();
  question.record_class = reader.u16();
  question.wire.assign(message.begin() + kHeaderBytes,
                       message.begin() + static_cast<long>(reader.at()));
  if (additional == 1) ATOLL_TRY_VOID(skip_opt(reader));
  if (!reader.done()) return malformed_message("bytes behind the question");
  return question;
}

std::string make_dns_answer(const DnsQuestion& question, DnsStatus status, const Address* address) {
  std::string out =
      make_header(question.id, question.recursion_desired, status, 1, address == nullptr ? 0 : 1);
  out += question.wire;
  if (address == nullptr) return out;
  put_u16(out, kNamePointer);
  put_u16(out, question.type);
  put_u16(out, kInternet);
  put_u16(out, static_cast<uint16_t>(kAnswerSeconds >> 16));
  put_u16(out, static_cast<uint16_t>(kAnswerSeconds & 0xffff));
  auto bytes = address->bytes();
  put_u16(out, static_cast<uint16_t>(bytes.size()));
  out.append(bytes.begin(), bytes.end());
  return out;
}

std::optional<std::string> make_format_error(std::span<const unsigned char> message) {
  // An answer is never answered: two servers could go on for ever.
  if (message.size() < 3 || (message[2] & 0x80) != 0) return std::nullopt;
  auto id = static_cast<uint16_t>(message[0] << 8 | message[1]);
  return make_header(id, false, DnsStatus::kFormatError, 0, 0);
}

}  // namespace atl::egress
