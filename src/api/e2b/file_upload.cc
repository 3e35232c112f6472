#include "api/e2b/file_upload.h"

#include <algorithm>
#include <set>

#include <boost/json/array.hpp>

#include "api/e2b/entry_json.h"
#include "api/e2b/gunzip.h"
#include "api/e2b/multipart.h"
#include "api/e2b/path.h"
#include "api/json_reply.h"
#include "api/query.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::FileWriter;

namespace {

constexpr size_t kStepBytes = 64 * 1024;
constexpr uint64_t kMaxDiscardBytes = 256 * 1024 * 1024;
constexpr size_t kMaxFiles = 1000;  // of one upload
constexpr size_t kMaxMetadataKeyBytes = 246;
constexpr size_t kMaxMetadataBytes = 4096;
constexpr std::string_view kMetadataField = "x-metadata-";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return result;
}

Result<std::vector<agent::FileAttribute>> metadata_of(const http::Request& request) {
  std::vector<agent::FileAttribute> attributes;
  size_t bytes = 0;
  auto printable = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  for (const auto& [name, value] : request.headers.fields()) {
    std::string field = lower(name);
    if (!field.starts_with(kMetadataField)) continue;
    std::string key = field.substr(kMetadataField.size());
    bytes += key.size() + value.size();
    bool sound = !key.empty() && key.size() <= kMaxMetadataKeyBytes && bytes <= kMaxMetadataBytes &&
                 attributes.size() < agent::kMaxAttributes &&
                 std::all_of(value.begin(), value.end(), printable);
    if (!sound)
      return Error(Code::kInvalid, "the metadata is too long or not printable ASCII: " + key)
          .with_reason("invalid_field");
    attributes.push_back({std::string(kMetadataPrefix) + key, value});
  }
  return attributes;
}

// What is being uploaded, and what has been.
class Upload {
 public:
  Upload(FileScope scope, std::vector<agent::FileAttribute> attributes)
      : scope_(std::move(scope)), attributes_(std::move(attributes)) {}

  http::Task<Result<void>> begin(std::string path) {
    ATOLL_CO_TRY(std::string resolved, resolve_path(path, scope_.user));
    if (!paths_.insert(resolved).second || paths_.size() > kMaxFiles)
      co_return Error(Code::kInvalid, "path '" + resolved + "' comes twice, or there are too many")
          .with_reason("invalid_field");
    sandbox::WriteFile request;
    request.path = std::move(resolved);
    ATOLL_CO_TRY(writer_, co_await scope_.files.write(std::move(request)));
    co_return Result<void>();
  }
  bool is_open() const { return writer_ != nullptr; }
  http::Task<Result<void>> write(std::string_view bytes) { return writer_->write(bytes); }
  http::Task<Result<void>> end() {
    auto made = co_await writer_->finish();
    writer_.reset();
    if (!made && made.error().reason() == "is_directory")
      co_return Error(Code::kInvalid, "the path is a directory").with_reason("invalid_path");
    if (!made) co_return std::move(made).error();
    sandbox::FileEntry entry = std::move(made->entry);
    if (!attributes_.empty()) {
      ATOLL_CO_TRY(entry, co_await scope_.files.change_attributes(entry.path, attributes_));
    }
    json::object object;
    object["name"] = sandbox::shown(name_of(entry.path));
    object["path"] = sandbox::shown(entry.path);
    object["type"] = "file";
    json::object metadata = metadata_json(entry);
    if (!metadata.empty()) object["metadata"] = std::move(metadata);
    written_.push_back(std::move(object));
    co_return Result<void>();
  }
  void give_up() { writer_.reset(); }
  const json::array& written() const { return written_; }

 private:
  FileScope scope_;
  std::vector<agent::FileAttribute> attributes_;
  std::set<std::string> paths_;
  std::unique_ptr<FileWriter> writer_;
  json::array written_;
};

bool is_gzipped(const http::Request& request) {
  return lower(request.headers.find("Content-Encoding").value_or("")) == "gzip";
}

http::Task<Result<void>> take_gzip(Upload& upload, Gunzip& gunzip, std::string_view bytes) {
  while (true) {
    ATOLL_CO_TRY(std::string plain, gunzip.take(bytes));
    if (plain.empty() && bytes.empty()) co_return Result<void>();
    ATOLL_CO_TRY_VOID(co_await upload.write(plain));
  }
}

http::Task<Result<void>> take_raw(Call& call, Upload& upload, std::string path) {
  ATOLL_CO_TRY_VOID(co_await upload.begin(std::move(path)));
  bool gzipped = is_gzipped(call.exchange.request());
  Gunzip gunzip;
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) break;
    std::string_view bytes(buffer.data(), count);
    Result<void> taken;
    if (gzipped)
      taken = co_await take_gzip(upload, gunzip, bytes);
    else
      taken = co_await upload.write(bytes);
    if (!taken) co_return taken;
  }
  if (gzipped && !gunzip.finished())
    co_return Error(Code::kInvalid, "the gzip stream is cut short")
        .with_reason("malformed_request");
  co_return co_await upload.end();
}

// Parts of another name than "file" are let be.
http::Task<Result<void>> take_piece(Upload& upload, Multipart::Piece& piece,
                                    const std::optional<std::string>& path) {
  using Kind = Multipart::Piece::Kind;
  if (piece.kind == Kind::kHead && piece.name == "file") {
    std::string name = path ? *path : piece.filename;
    co_return co_await upload.begin(std::move(name));
  }
  if (piece.kind == Kind::kHead || !upload.is_open()) co_return Result<void>();
  if (piece.kind == Kind::kBytes) co_return co_await upload.write(piece.bytes);
  co_return co_await upload.end();
}

http::Task<Result<void>> take_parts(Call& call, Upload& upload, Multipart parts,
                                    std::optional<std::string> path) {
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) break;
    ATOLL_CO_TRY(auto pieces, parts.take({buffer.data(), count}));
    for (Multipart::Piece& piece : pieces)
      ATOLL_CO_TRY_VOID(co_await take_piece(upload, piece, path));
  }
  if (parts.finished()) co_return Result<void>();
  co_return Error(Code::kInvalid, "the multipart body is cut short")
      .with_reason("malformed_request");
}

// Most clients read no answer before they have sent everything.
http::Task<void> discard_body(Call& call) {
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  for (uint64_t total = 0; total < kMaxDiscardBytes;) {
    auto count = co_await call.exchange.read_body_some(room);
    if (!count || *count == 0) co_return;
    total += *count;
  }
}

http::Task<Result<void>> take_body(Call& call, Upload& upload) {
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(auto path, text_parameter("path", request));
  std::string type(request.headers.find("Content-Type").value_or(""));
  auto boundary = boundary_of(type);
  if (boundary) {
    Multipart parts(*boundary);
    co_return co_await take_parts(call, upload, std::move(parts), path);
  }
  bool raw = lower(type).starts_with("application/octet-stream");
  if (!raw || !path)
    co_return Error(Code::kInvalid,
                    "send multipart/form-data, or application/octet-stream with ?path=")
        .with_reason("malformed_request");
  co_return co_await take_raw(call, upload, *path);
}

}  // namespace

http::Task<Reply> take_upload(Call& call, FileScope scope) {
  ATOLL_CO_TRY(auto attributes, metadata_of(call.exchange.request()));
  Upload upload(std::move(scope), std::move(attributes));
  auto taken = co_await take_body(call, upload);
  if (!taken) {
    upload.give_up();
    if (taken.error().code() == Code::kCancelled) co_return std::optional<http::Response>();
    co_await discard_body(call);
    co_return std::move(taken).error();
  }
  co_return std::optional(json_reply(200, upload.written()));
}

}  // namespace atl::api::e2b
