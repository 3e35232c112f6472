#include "agent/output_stream.h"

#include <algorithm>

#include "base/check.h"

namespace atl::agent {

void OutputStream::append(std::string_view bytes) {
  ATOLL_CHECK(bytes.size() <= room());
  auto kept = static_cast<size_t>(std::min<uint64_t>(bytes.size(), limit_bytes_ - produced()));
  cut_ += bytes.size() - kept;
  buffer_.append(bytes.substr(0, kept));
}

std::string_view OutputStream::unsent() const {
  auto skipped = static_cast<size_t>(sent_ - acknowledged_);
  return std::string_view(buffer_).substr(head_ + skipped, kMaxOutputBytes);
}

void OutputStream::mark_sent(size_t bytes) {
  sent_ += bytes;
  ATOLL_CHECK(sent_ <= produced());
}

bool OutputStream::acknowledge(uint64_t offset) {
  if (offset < acknowledged_ || offset > sent_) return false;
  release_until(offset);
  return true;
}

bool OutputStream::resume_from(uint64_t offset) {
  if (offset < acknowledged_ || offset > produced()) return false;
  release_until(offset);
  sent_ = offset;
  return true;
}

void OutputStream::release_until(uint64_t offset) {
  head_ += static_cast<size_t>(offset - acknowledged_);
  acknowledged_ = offset;
  if (head_ == buffer_.size()) {
    // Idle streams are many and live long: give the memory back, not only the bytes.
    buffer_ = std::string();
    head_ = 0;
  } else if (head_ >= kWindowBytes / 2) {
    buffer_.erase(0, head_);
    head_ = 0;
  }
}

}  // namespace atl::agent
