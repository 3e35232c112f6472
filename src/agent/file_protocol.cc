#include "agent/file_protocol.h"

#include <algorithm>

#include "base/utf8.h"

namespace atl::agent {
namespace {

constexpr size_t kRecordHeaderBytes = 5;
constexpr size_t kMaxOperationBytes = 256;
constexpr size_t kMaxAddressBytes = 64;
constexpr uint32_t kMaxErrno = 4095;
constexpr uint32_t kMaxMode = 07777;

// Texts that name something in a file system; how the kernel reads them.
bool is_name(std::string_view text) { return text.find('\0') == text.npos; }
bool is_absolute(std::string_view text) { return text.starts_with('/') && is_name(text); }

void put_attributes(ByteWriter& writer, const std::vector<FileAttribute>& attributes) {
  writer.u16(static_cast<uint16_t>(attributes.size()));
  for (const FileAttribute& attribute : attributes) {
    writer.text(attribute.name);
    writer.u8(attribute.value ? 1 : 0);
    if (attribute.value) writer.text(*attribute.value);
  }
}

bool take_attributes(ByteReader& reader, std::vector<FileAttribute>& attributes) {
  uint16_t count = reader.u16();
  if (count > kMaxAttributes) return false;
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    FileAttribute attribute;
    attribute.name = reader.text(kMaxAttributeNameBytes);
    uint8_t has_value = reader.u8();
    if (has_value > 1 || attribute.name.empty() || !is_name(attribute.name)) return false;
    if (has_value == 1) attribute.value = reader.text(kMaxAttributeBytes);
    attributes.push_back(std::move(attribute));
  }
  return reader.ok();
}

// The payload of a record, and at the end the record.
class RecordWriter {
 public:
  explicit RecordWriter(RecordType type) : type_(type), writer_(payload_) {}
  ByteWriter& payload() { return writer_; }
  std::string take() const { return encode_record(type_, payload_); }

 private:
  RecordType type_;
  std::string payload_;
  ByteWriter writer_;
};

void put_entry(ByteWriter& writer, const FileEntry& entry) {
  writer.text(entry.path);
  writer.u8(static_cast<uint8_t>(entry.type));
  writer.u32(entry.mode);
  writer.u32(entry.uid);
  writer.u32(entry.gid);
  writer.u64(entry.size);
  writer.u64(static_cast<uint64_t>(entry.modified_ns));
  writer.u64(entry.inode);
  writer.text(entry.target);
  writer.text(entry.hard_link);
  put_attributes(writer, entry.attributes);
}

bool take_entry(ByteReader& reader, FileEntry& entry) {
  entry.path = reader.text(kMaxPathBytes);
  uint8_t type = reader.u8();
  entry.mode = reader.u32();
  entry.uid = reader.u32();
  entry.gid = reader.u32();
  entry.size = reader.u64();
  entry.modified_ns = static_cast<int64_t>(reader.u64());
  entry.inode = reader.u64();
  entry.target = reader.text(kMaxPathBytes);
  entry.hard_link = reader.text(kMaxPathBytes);
  if (!take_attributes(reader, entry.attributes)) return false;
  if (type > static_cast<uint8_t>(EntryType::kOther) || entry.mode > kMaxMode) return false;
  entry.type = static_cast<EntryType>(type);
  return is_name(entry.path) && is_name(entry.target) && is_name(entry.hard_link);
}

bool is_sound(const FileRequest& request) {
  if (request.user.empty() || !is_name(request.user)) return false;
  if (!is_absolute(request.path) || !is_name(request.cursor)) return false;
  if (request.mode > kMaxMode || (request.flags & ~kAllFileFlags) != 0) return false;
  if (request.operation == FileOperation::kMove) return is_absolute(request.target);
  return is_name(request.target);
}

}  // namespace

std::string encode(uint32_t channel, const FileRequest& request) {
  FrameWriter frame(FrameType::kOpenFiles, channel);
  ByteWriter& writer = frame.payload();
  writer.u8(static_cast<uint8_t>(request.operation));
  writer.text(request.user);
  writer.text(request.path);
  writer.text(request.target);
  writer.text(request.text);
  writer.text(request.cursor);
  writer.u64(request.offset);
  writer.u64(request.length);
  writer.u32(request.mode);
  writer.u32(request.depth);
  writer.u32(request.limit);
  writer.u32(request.flags);
  put_attributes(writer, request.attributes);
  return frame.take();
}

Result<FileRequest> decode_file_request(std::string_view payload) {
  ByteReader reader(payload);
  FileRequest request;
  uint8_t operation = reader.u8();
  request.user = reader.text(kMaxUserBytes);
  request.path = reader.text(kMaxPathBytes);
  request.target = reader.text(kMaxPathBytes);
  request.text = reader.text(kMaxFindTextBytes);
  request.cursor = reader.text(kMaxPathBytes);
  request.offset = reader.u64();
  request.length = reader.u64();
  request.mode = reader.u32();
  request.depth = reader.u32();
  request.limit = reader.u32();
  request.flags = reader.u32();
  bool taken = take_attributes(reader, request.attributes);
  if (!taken || !reader.done() || operation > static_cast<uint8_t>(FileOperation::kRestore))
    return malformed("open files");
  request.operation = static_cast<FileOperation>(operation);
  if (!is_sound(request)) return malformed("open files");
  return request;
}

std::string encode_record_header(RecordType type, size_t length) {
  std::string header;
  ByteWriter writer(header);
  writer.u32(static_cast<uint32_t>(length));
  writer.u8(static_cast<uint8_t>(type));
  return header;
}

std::string encode_record(RecordType type, std::string_view payload) {
  return encode_record_header(type, payload.size()).append(payload);
}

std::string encode_record(const FileEntry& entry) {
  RecordWriter record(RecordType::kEntry);
  put_entry(record.payload(), entry);
  return record.take();
}

Result<FileEntry> decode_entry(std::string_view payload) {
  ByteReader reader(payload);
  FileEntry entry;
  if (!take_entry(reader, entry) || !reader.done()) return malformed("entry in a");
  return entry;
}

std::string encode_record(const FileChange& change) {
  RecordWriter record(RecordType::kChange);
  record.payload().u8(static_cast<uint8_t>(change.kind));
  record.payload().u8(static_cast<uint8_t>(change.type));
  record.payload().text(change.path);
  record.payload().text(change.target);
  return record.take();
}

Result<FileChange> decode_change(std::string_view payload) {
  ByteReader reader(payload);
  uint8_t kind = reader.u8();
  uint8_t type = reader.u8();
  FileChange change;
  change.path = reader.text(kMaxPathBytes);
  change.target = reader.text(kMaxPathBytes);
  if (!reader.done() || kind > static_cast<uint8_t>(ChangeKind::kOverflow) ||
      type > static_cast<uint8_t>(EntryType::kOther))
    return malformed("change in a");
  change.kind = static_cast<ChangeKind>(kind);
  change.type = static_cast<EntryType>(type);
  return change;
}

std::string encode_record(const FileMatch& match) {
  RecordWriter record(RecordType::kMatch);
  put_entry(record.payload(), match.entry);
  record.payload().u64(match.line);
  record.payload().text(match.text);
  return record.take();
}

Result<FileMatch> decode_match(std::string_view payload) {
  ByteReader reader(payload);
  FileMatch match;
  bool taken = take_entry(reader, match.entry);
  match.line = reader.u64();
  match.text = reader.text(kMaxMatchTextBytes);
  if (!taken || !reader.done()) return malformed("match in a");
  return match;
}

std::string encode_record(const ListeningPort& port) {
  RecordWriter record(RecordType::kPort);
  record.payload().u16(port.port);
  record.payload().text(port.address);
  return record.take();
}

Result<ListeningPort> decode_port(std::string_view payload) {
  ByteReader reader(payload);
  ListeningPort port;
  port.port = reader.u16();
  port.address = reader.text(kMaxAddressBytes);
  if (!reader.done() || port.port == 0 || !is_utf8(port.address)) return malformed("port in a");
  return port;
}

std::string encode_record(const FileFailure& failure) {
  RecordWriter record(RecordType::kFailed);
  record.payload().u32(static_cast<uint32_t>(failure.system_errno));
  record.payload().text(failure.operation);
  record.payload().text(failure.path);
  return record.take();
}

Result<FileFailure> decode_failure(std::string_view payload) {
  ByteReader reader(payload);
  uint32_t system_errno = reader.u32();
  FileFailure failure;
  failure.operation = reader.text(kMaxOperationBytes);
  failure.path = reader.text(kMaxPathBytes);
  if (!reader.done() || system_errno == 0 || system_errno > kMaxErrno ||
      !is_utf8(failure.operation))
    return malformed("failure in a");
  failure.system_errno = static_cast<int32_t>(system_errno);
  return failure;
}

std::string encode_done(uint8_t flags) {
  RecordWriter record(RecordType::kDone);
  record.payload().u8(flags);
  return record.take();
}

Result<uint8_t> decode_done(std::string_view payload) {
  ByteReader reader(payload);
  uint8_t flags = reader.u8();
  if (!reader.done() || (flags & ~kAllDoneFlags) != 0) return malformed("done in a");
  return flags;
}

void RecordReader::add(std::string_view bytes) {
  buffer_.erase(0, std::exchange(begin_, 0));
  buffer_.append(bytes);
}

Result<std::optional<FileRecord>> RecordReader::next() {
  std::string_view available = std::string_view(buffer_).substr(begin_);
  if (available.size() < kRecordHeaderBytes) return std::optional<FileRecord>();
  ByteReader reader(available);
  uint32_t length = reader.u32();
  uint8_t type = reader.u8();
  if (length > kMaxRecordBytes || type > static_cast<uint8_t>(RecordType::kFailed))
    return malformed("record in a");
  if (available.size() < kRecordHeaderBytes + length) return std::optional<FileRecord>();
  begin_ += kRecordHeaderBytes + length;
  return std::optional<FileRecord>(
      FileRecord{static_cast<RecordType>(type), available.substr(kRecordHeaderBytes, length)});
}

}  // namespace atl::agent
