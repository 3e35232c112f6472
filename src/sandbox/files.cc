#include "sandbox/files.h"

#include <algorithm>

namespace atl::sandbox {

using agent::FileFlag;
using agent::FileOperation;
using agent::RecordType;

namespace {

// All records of one answer that is held in memory.
constexpr size_t kMaxAnswerBytes = 16 * 1024 * 1024;
constexpr size_t kMaxPorts = 4096;
constexpr size_t kMaxTreeLinks = 100'000;
constexpr uint64_t kMaxTreeBytes = 1ull << 40;  // a sparse file may claim more than any disk has
constexpr size_t kSendBytes = 64 * 1024;        // of one kBytes record

Error too_large() {
  return Error(Code::kExhausted, "the answer is larger than 16 MiB")
      .with_reason("answer_too_large");
}

}  // namespace

Task<Result<std::string_view>> FileReader::next() {
  if (left_ == 0) {
    ATOLL_CO_TRY_VOID(co_await call_->expect_done());
    co_return std::string_view();
  }
  ATOLL_CO_TRY(agent::FileRecord record, co_await call_->expect(RecordType::kBytes));
  if (record.payload.empty() || record.payload.size() > left_)
    co_return bad_answer("has other bytes than it promised");
  left_ -= record.payload.size();
  co_return record.payload;
}

Task<Result<void>> FileWriter::write(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kSendBytes))) {
    std::string record = agent::encode_record(RecordType::kBytes, bytes.substr(0, kSendBytes));
    ATOLL_CO_TRY_VOID(co_await call_->send(std::move(record)));
  }
  co_return Result<void>();
}

Task<Result<MadeEntry>> FileWriter::finish() {
  std::string done = agent::encode_done();
  ATOLL_CO_TRY_VOID(co_await call_->send(std::move(done)));
  ATOLL_CO_TRY(agent::FileRecord record, co_await call_->expect(RecordType::kEntry));
  auto entry = agent::decode_entry(record.payload);
  if (!entry) co_return bad_answer("is malformed");
  ATOLL_CO_TRY(uint8_t flags, co_await call_->expect_done());
  entry->path = path_;
  bool existed = flags & bit(agent::DoneFlag::kExisted);
  co_return MadeEntry{std::move(*entry), existed};
}

Task<Result<std::optional<FileEntry>>> TreeReader::next_entry() {
  if (left_ > 0) co_return Error(Code::kConflict, "the entry before was not read to its end");
  SteadyTime deadline = call_->patience();
  ATOLL_CO_TRY(auto record, co_await call_->next(deadline));
  if (!record) co_return std::optional<FileEntry>();
  if (record->type != RecordType::kEntry) co_return bad_answer("has bytes of no file");
  auto entry = agent::decode_entry(record->payload);
  bool sound = entry.ok() && is_clean_relative(entry->path) &&
               (entry->hard_link.empty() || is_clean_relative(entry->hard_link));
  if (!sound) co_return bad_answer("names a file outside of the tree");
  // Who unpacks the tree elsewhere would write through such a link.
  for (size_t slash = entry->path.find('/'); slash != std::string::npos;
       slash = entry->path.find('/', slash + 1))
    if (std::binary_search(links_.begin(), links_.end(), entry->path.substr(0, slash)))
      co_return bad_answer("has a file beneath a link");
  if (entry->type == agent::EntryType::kSymlink) {
    if (links_.size() >= kMaxTreeLinks) co_return too_large();
    links_.insert(std::upper_bound(links_.begin(), links_.end(), entry->path), entry->path);
  }
  bool has_bytes = entry->type == agent::EntryType::kFile && entry->hard_link.empty();
  if (!has_bytes) entry->size = 0;
  if (entry->size > kMaxTreeBytes) co_return too_large();
  left_ = entry->size;
  co_return std::optional(std::move(*entry));
}

Task<Result<std::string_view>> TreeReader::next_bytes() {
  if (left_ == 0) co_return std::string_view();
  ATOLL_CO_TRY(agent::FileRecord record, co_await call_->expect(RecordType::kBytes));
  if (record.payload.empty() || record.payload.size() > left_)
    co_return bad_answer("has other bytes than it promised");
  left_ -= record.payload.size();
  co_return record.payload;
}

Task<Result<void>> TreeWriter::add(FileEntry entry) {
  std::string record = agent::encode_record(entry);
  co_return co_await call_->send(std::move(record));
}

Task<Result<void>> TreeWriter::write(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kSendBytes))) {
    std::string record = agent::encode_record(RecordType::kBytes, bytes.substr(0, kSendBytes));
    ATOLL_CO_TRY_VOID(co_await call_->send(std::move(record)));
  }
  co_return Result<void>();
}

Task<Result<void>> TreeWriter::finish() {
  std::string done = agent::encode_done();
  ATOLL_CO_TRY_VOID(co_await call_->send(std::move(done)));
  ATOLL_CO_TRY_VOID(co_await call_->expect_done());
  co_return Result<void>();
}

agent::FileRequest Files::request_for(FileOperation operation, std::string path) const {
  agent::FileRequest request;
  request.operation = operation;
  request.user = user_;
  request.path = std::move(path);
  return request;
}

Task<Result<MadeEntry>> Files::one_entry(agent::FileRequest request) {
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  ATOLL_CO_TRY(agent::FileRecord record, co_await call->expect(RecordType::kEntry));
  auto entry = agent::decode_entry(record.payload);
  if (!entry) co_return bad_answer("is malformed");
  ATOLL_CO_TRY(uint8_t flags, co_await call->expect_done());
  bool moved = request.operation == FileOperation::kMove;
  entry->path = moved ? request.target : request.path;
  bool existed = flags & bit(agent::DoneFlag::kExisted);
  co_return MadeEntry{std::move(*entry), existed};
}

Task<Result<FileEntry>> Files::plain_entry(agent::FileRequest request) {
  ATOLL_CO_TRY(MadeEntry made, co_await one_entry(std::move(request)));
  co_return std::move(made.entry);
}

Task<Result<FileEntry>> Files::stat(std::string path) {
  return plain_entry(request_for(FileOperation::kStat, std::move(path)));
}

Task<Result<std::vector<FileEntry>>> Files::list(ListFiles request) {
  agent::FileRequest asked = request_for(FileOperation::kList, request.path);
  asked.cursor = request.cursor;
  asked.depth = request.depth;
  asked.limit = request.limit;
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, asked));
  std::vector<FileEntry> entries;
  size_t bytes = 0;
  while (true) {
    SteadyTime deadline = call->patience();
    ATOLL_CO_TRY(auto record, co_await call->next(deadline));
    if (!record) co_return entries;
    bytes += record->payload.size();
    if (bytes > kMaxAnswerBytes) co_return too_large();
    auto entry = agent::decode_entry(record->payload);
    bool sound = record->type == RecordType::kEntry && entry.ok() &&
                 entries.size() < request.limit && is_beneath(request.path, entry->path);
    if (!sound) co_return bad_answer("has an entry that was not asked for");
    entries.push_back(std::move(*entry));
  }
}

Task<Result<std::unique_ptr<FileReader>>> Files::read(std::string path, uint64_t offset,
                                                      uint64_t length) {
  agent::FileRequest request = request_for(FileOperation::kRead, path);
  request.offset = offset;
  request.length = length;
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  ATOLL_CO_TRY(agent::FileRecord record, co_await call->expect(RecordType::kEntry));
  auto entry = agent::decode_entry(record.payload);
  if (!entry || entry->type != agent::EntryType::kFile) co_return bad_answer("is malformed");
  entry->path = std::move(path);
  uint64_t behind = entry->size > offset ? entry->size - offset : 0;
  co_return std::make_unique<FileReader>(std::move(call), std::move(*entry),
                                         std::min(behind, length));
}

Task<Result<std::unique_ptr<FileWriter>>> Files::write(WriteFile request) {
  agent::FileRequest asked = request_for(FileOperation::kWrite, request.path);
  asked.mode = request.mode;
  if (request.parents == Parents::kMake) asked.flags |= bit(FileFlag::kParents);
  if (request.if_exists == IfExists::kReplace) asked.flags |= bit(FileFlag::kReplace);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, asked));
  co_return std::make_unique<FileWriter>(std::move(call), std::move(request.path));
}

Task<Result<MadeEntry>> Files::move(std::string path, std::string to, IfExists if_exists) {
  agent::FileRequest request = request_for(FileOperation::kMove, std::move(path));
  request.target = std::move(to);
  if (if_exists == IfExists::kReplace) request.flags |= bit(FileFlag::kReplace);
  return one_entry(std::move(request));
}

Task<Result<void>> Files::remove(std::string path, Depth depth) {
  agent::FileRequest request = request_for(FileOperation::kRemove, std::move(path));
  if (depth == Depth::kTree) request.flags |= bit(FileFlag::kRecursive);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  ATOLL_CO_TRY_VOID(co_await call->expect_done());
  co_return Result<void>();
}

Task<Result<MadeEntry>> Files::make_directory(std::string path, uint32_t mode, Parents parents) {
  agent::FileRequest request = request_for(FileOperation::kMakeDirectory, std::move(path));
  request.mode = mode;
  if (parents == Parents::kMake) request.flags |= bit(FileFlag::kParents);
  return one_entry(std::move(request));
}

Task<Result<FileEntry>> Files::change_mode(std::string path, uint32_t mode) {
  agent::FileRequest request = request_for(FileOperation::kChange, std::move(path));
  request.mode = mode;
  request.flags = bit(FileFlag::kSetMode);
  return plain_entry(std::move(request));
}

Task<Result<FileEntry>> Files::change_attributes(std::string path,
                                                 std::vector<agent::FileAttribute> attributes) {
  agent::FileRequest request = request_for(FileOperation::kChange, std::move(path));
  request.attributes = std::move(attributes);
  return plain_entry(std::move(request));
}

Task<Result<FoundFiles>> Files::find(FindFiles request) {
  agent::FileRequest asked = request_for(FileOperation::kFind, request.path);
  asked.target = request.name;
  asked.text = request.text;
  asked.depth = request.depth;
  asked.limit = request.limit;
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, asked));
  FoundFiles found;
  size_t bytes = 0;
  while (true) {
    SteadyTime deadline = call->patience();
    ATOLL_CO_TRY(auto record, co_await call->next(deadline));
    if (!record) break;
    bytes += record->payload.size();
    if (bytes > kMaxAnswerBytes) co_return too_large();
    auto match = agent::decode_match(record->payload);
    bool sound = record->type == RecordType::kMatch && match.ok() &&
                 found.matches.size() < request.limit &&
                 is_beneath(request.path, match->entry.path);
    if (!sound) co_return bad_answer("has a match that was not asked for");
    found.matches.push_back(std::move(*match));
  }
  ATOLL_CO_TRY(uint8_t flags, co_await call->expect_done());
  found.truncated = flags & bit(agent::DoneFlag::kCutShort);
  co_return found;
}

Task<Result<std::unique_ptr<FileCall>>> Files::watch(std::string path, Depth depth) {
  agent::FileRequest request = request_for(FileOperation::kWatch, std::move(path));
  if (depth == Depth::kTree) request.flags |= bit(FileFlag::kRecursive);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  ATOLL_CO_TRY_VOID(co_await call->expect(RecordType::kReady));
  co_return call;
}

Task<Result<std::unique_ptr<TreeReader>>> Files::pack(std::string path, std::string glob) {
  agent::FileRequest request = request_for(FileOperation::kPack, std::move(path));
  request.target = std::move(glob);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  co_return std::make_unique<TreeReader>(std::move(call));
}

Task<Result<std::unique_ptr<TreeWriter>>> Files::unpack(std::string path) {
  agent::FileRequest request = request_for(FileOperation::kUnpack, std::move(path));
  request.flags |= bit(FileFlag::kParents);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  co_return std::make_unique<TreeWriter>(std::move(call));
}

Task<Result<std::vector<agent::ListeningPort>>> Files::ports() {
  agent::FileRequest request = request_for(FileOperation::kPorts, "/");
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox_, request));
  std::vector<agent::ListeningPort> ports;
  while (true) {
    SteadyTime deadline = call->patience();
    ATOLL_CO_TRY(auto record, co_await call->next(deadline));
    if (!record) co_return ports;
    auto port = agent::decode_port(record->payload);
    if (record->type != RecordType::kPort || !port || ports.size() >= kMaxPorts)
      co_return bad_answer("has a port that was not asked for");
    ports.push_back(std::move(*port));
  }
}

}  // namespace atl::sandbox
