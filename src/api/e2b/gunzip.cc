#include "api/e2b/gunzip.h"

#include <zlib.h>

namespace atl::api::e2b {

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, and gzip's own frame only

Error malformed() {
  return Error(Code::kInvalid, "the body is not one gzip stream").with_reason("malformed_request");
}

}  // namespace

Gunzip::Gunzip() : stream_(std::make_unique<z_stream_s>()) {
  ATOLL_CHECK(inflateInit2(stream_.get(), kGzipWindow) == Z_OK);
}

Gunzip::~Gunzip() { inflateEnd(stream_.get()); }

Result<std::string> Gunzip::take(std::string_view& bytes) {
  if (finished_ && !bytes.empty()) return malformed();
  std::string out(kMostAtOnce, '\0');
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_->avail_in = static_cast<uInt>(bytes.size());
  stream_->next_out = reinterpret_cast<Bytef*>(out.data());
  stream_->avail_out = static_cast<uInt>(out.size());
  int done = finished_ ? Z_STREAM_END : inflate(stream_.get(), Z_NO_FLUSH);
  // Z_BUF_ERROR: it needs more.
  if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR) return malformed();
  finished_ = done == Z_STREAM_END;
  bytes.remove_prefix(bytes.size() - stream_->avail_in);
  out.resize(out.size() - stream_->avail_out);
  return out;
}

}  // namespace atl::api::e2b
