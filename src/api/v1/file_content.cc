#include "api/v1/file_content.h"

#include <charconv>

#include <fmt/format.h>

#include "api/failure.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/file_json.h"
#include "http/head.h"

namespace atl::api::v1 {

using sandbox::FileReader;

namespace {

constexpr size_t kUploadStepBytes = 64 * 1024;
constexpr uint64_t kMaxDiscardBytes = 256 * 1024 * 1024;

std::optional<uint64_t> to_number(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Changes with every write: a new file has another inode, a changed one another time or size.
std::string etag_of(const agent::FileEntry& entry) {
  return fmt::format("\"{:x}-{:x}-{:x}\"", entry.size, static_cast<uint64_t>(entry.modified_ns),
                     entry.inode);
}

http::Headers file_headers(const Call& call, const agent::FileEntry& entry) {
  http::Headers headers = byte_headers(call);
  headers.add("Accept-Ranges", "bytes");
  headers.add("Last-Modified", http::http_date(time_of(entry.modified_ns)));
  headers.add("ETag", etag_of(entry));
  headers.add("Atoll-Type", std::string(entry_type_name(entry.type)));
  headers.add("Atoll-Mode", mode_text(entry.mode));
  return headers;
}

http::Response without_body(int status, http::Headers headers) {
  http::Response response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

// An error leaves the answer without its end, which is how the client learns that it is not whole.
http::Task<Result<void>> send_bytes(Call& call, FileReader& reader) {
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await reader.next());
    if (bytes.empty()) break;
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(bytes));
  }
  co_return co_await call.exchange.finish();
}

http::Task<Result<void>> take_body(Call& call, sandbox::FileWriter& writer) {
  std::string buffer(kUploadStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) co_return Result<void>();
    std::string_view bytes(buffer.data(), count);
    ATOLL_CO_TRY_VOID(co_await writer.write(bytes));
  }
}

// Most clients read no answer before they have sent everything, and take a connection that is
// closed meanwhile for a broken one.
http::Task<void> discard_body(Call& call) {
  std::string buffer(kUploadStepBytes, '\0');
  std::span<char> room(buffer);
  for (uint64_t total = 0; total < kMaxDiscardBytes;) {
    auto count = co_await call.exchange.read_body_some(room);
    if (!count || *count == 0) co_return;
    total += *count;
  }
}

Result<sandbox::WriteFile> parse_write(const http::Request& request, std::string path) {
  sandbox::WriteFile write;
  write.path = std::move(path);
  ATOLL_TRY(write.mode, mode_parameter(request));
  if (has_word(request.query, "parents")) {
    ATOLL_TRY(bool parents, flag_parameter("parents", request));
    write.parents = parents ? sandbox::Parents::kMake : sandbox::Parents::kMustExist;
  }
  auto none_match = request.headers.find("If-None-Match");
  if (none_match && *none_match != "*")
    return Error(Code::kInvalid, "If-None-Match of an upload must be *")
        .with_reason("invalid_field")
        .with_field("If-None-Match");
  if (none_match) write.if_exists = sandbox::IfExists::kFail;
  return write;
}

// A refusal may come at any time: before the first byte is taken, or when all are there.
http::Task<Result<sandbox::MadeEntry>> write_body(Call& call, sandbox::Files& files,
                                                  sandbox::WriteFile request) {
  ATOLL_CO_TRY(std::unique_ptr<sandbox::FileWriter> writer,
               co_await files.write(std::move(request)));
  auto taken = co_await take_body(call, *writer);
  if (!taken) {
    writer.reset();
    co_await discard_body(call);
    co_return std::move(taken).error();
  }
  auto made = co_await writer->finish();
  co_return made;
}

}  // namespace

http::Headers byte_headers(const Call& call, std::string_view type) {
  return http::Headers{{"Content-Type", std::string(type)},
                       {"Content-Disposition", "attachment"},
                       {"X-Content-Type-Options", "nosniff"},
                       {"Cache-Control", "no-store"},
                       {"X-Request-Id", call.request_id}};
}

// What is not one range of bytes is ignored, as RFC 9110 wants it.
ByteRange range_of(const http::Request& request, std::string_view etag, uint64_t size) {
  ByteRange whole{ByteRange::Kind::kWhole, 0, size};
  auto field = request.headers.find("Range");
  auto condition = request.headers.find("If-Range");
  if (!field || !field->starts_with("bytes=") || (condition && *condition != etag)) return whole;
  std::string_view range = field->substr(6);
  size_t dash = range.find('-');
  if (dash == range.npos) return whole;
  auto first = to_number(range.substr(0, dash));
  auto last = to_number(range.substr(dash + 1));
  bool is_suffix = dash == 0 && last;
  if (is_suffix) {
    uint64_t length = std::min(*last, size);
    auto kind = length == 0 ? ByteRange::Kind::kUnsatisfiable : ByteRange::Kind::kPart;
    return {kind, size - length, length};
  }
  bool open_end = dash + 1 == range.size();
  if (!first || (!last && !open_end) || (last && *last < *first)) return whole;
  if (*first >= size) return {ByteRange::Kind::kUnsatisfiable, 0, 0};
  uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return {ByteRange::Kind::kPart, *first, end - *first + 1};
}

std::string content_range(const ByteRange& range, uint64_t size) {
  if (range.kind == ByteRange::Kind::kUnsatisfiable) return fmt::format("bytes */{}", size);
  return fmt::format("bytes {}-{}/{}", range.offset, range.offset + range.length - 1, size);
}

// The file is opened twice when only a part of it is wanted: the first time says how long it is.
http::Task<Reply> download_file(Call& call, FileTarget target) {
  const http::Request& request = call.exchange.request();
  bool is_head = request.method == http::Method::kHead;
  bool whole = !is_head && !request.headers.find("Range");
  uint64_t first_length = whole ? UINT64_MAX : 0;
  ATOLL_CO_TRY(std::unique_ptr<FileReader> reader,
               co_await target.files.read(target.path, 0, first_length));
  agent::FileEntry entry = reader->entry();
  std::string etag = etag_of(entry);
  http::Headers headers = file_headers(call, entry);
  auto none_match = request.headers.find("If-None-Match");
  if (none_match && *none_match == etag) {
    http::Response response = without_body(304, std::move(headers));
    co_return std::optional(std::move(response));
  }
  ByteRange range = range_of(request, etag, entry.size);
  if (range.kind != ByteRange::Kind::kWhole)
    headers.add("Content-Range", content_range(range, entry.size));
  if (range.kind == ByteRange::Kind::kUnsatisfiable) {
    http::Response response = refusal_response(416, "range_not_satisfiable",
                                               "the file has no such bytes", call.request_id);
    response.headers.add("Content-Range", content_range(range, entry.size));
    co_return std::optional(std::move(response));
  }
  if (!whole && !is_head) {
    reader.reset();
    ATOLL_CO_TRY(reader, co_await target.files.read(target.path, range.offset, range.length));
    if (etag_of(reader->entry()) != etag)
      co_return Error(Code::kConflict, "the file was changed while it was opened")
          .with_reason("file_busy");
  }
  headers.add("Content-Length", std::to_string(range.length));
  int status = range.kind == ByteRange::Kind::kPart ? 206 : 200;
  if (is_head) {
    http::Response response = without_body(status, std::move(headers));
    co_return std::optional(std::move(response));
  }
  Result<void> sent = co_await call.exchange.start_stream(status, std::move(headers));
  if (sent) sent = co_await send_bytes(call, *reader);
  co_return std::optional<http::Response>();
}

http::Task<Reply> upload_file(Call& call, sandbox::Sandboxes& sandboxes) {
  ATOLL_CO_TRY(FileTarget target, file_target(call, sandboxes));
  ATOLL_CO_TRY(sandbox::WriteFile request, parse_write(call.exchange.request(), target.path));
  bool must_be_new = request.if_exists == sandbox::IfExists::kFail;
  auto made = co_await write_body(call, target.files, std::move(request));
  if (!made && must_be_new && made.error().reason() == "exists") {
    http::Response response =
        refusal_response(412, "exists", "there is a file of that name", call.request_id);
    co_return std::optional(std::move(response));
  }
  if (!made) co_return std::move(made).error();
  http::Response response = json_reply(made->existed ? 200 : 201, entry_json(made->entry));
  response.headers.add("ETag", etag_of(made->entry));
  co_return std::optional(std::move(response));
}

}  // namespace atl::api::v1
