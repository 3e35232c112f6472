// GET, HEAD and PUT of a file's bytes.
#pragma once

#include "api/v1/file_request.h"
#include "sandbox/files.h"

namespace atl::api::v1 {

http::Task<Reply> download_file(Call& call, FileTarget target);
http::Task<Reply> upload_file(Call& call, sandbox::Sandboxes& sandboxes);

// The header fields of an answer that is a program's bytes. Nothing of the name goes into them, and
// no browser may take the bytes for a page of this server.
http::Headers byte_headers(const Call& call, std::string_view type = "application/octet-stream");

// The part of `size` bytes that a Range field asks for.
struct ByteRange {
  enum class Kind : unsigned char { kWhole, kPart, kUnsatisfiable } kind = Kind::kWhole;
  uint64_t offset = 0;
  uint64_t length = 0;
};
ByteRange range_of(const http::Request& request, std::string_view etag, uint64_t size);
std::string content_range(const ByteRange& range, uint64_t size);

}  // namespace atl::api::v1
