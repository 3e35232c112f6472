#include "sandbox/speech_log.h"

#include "base/bytes.h"

namespace atl::sandbox {

namespace {

constexpr uint64_t kMarkBytes = 24;
constexpr size_t kMaxMarks = 64 * 1024;  // read at once

}  // namespace

Result<void> SpeechLog::adopt() {
  ATOLL_TRY(speech_log_, logs_.find_log(sandbox_, exec_, store::OutputStream::kSpeech));
  ATOLL_TRY(mark_log_, logs_.find_log(sandbox_, exec_, store::OutputStream::kMarks));
  if (speech_log_) {
    ATOLL_TRY(end_, speech_log_->size());
  }
  if (!mark_log_) return {};
  ATOLL_TRY(uint64_t bytes, mark_log_->size());
  marks_ = bytes / kMarkBytes;
  if (marks_ == 0) return {};
  ATOLL_TRY(auto last, read_marks(marks_ - 1, 1));
  if (!last.empty()) last_ = last.front();
  return {};
}

Result<void> SpeechLog::open_to_append() {
  if (can_append_) return {};
  ATOLL_TRY(auto speech, logs_.open_log(sandbox_, exec_, store::OutputStream::kSpeech));
  ATOLL_TRY(auto marks, logs_.open_log(sandbox_, exec_, store::OutputStream::kMarks));
  speech_log_ = std::move(speech);
  mark_log_ = std::move(marks);
  can_append_ = true;
  return {};
}

Result<uint64_t> SpeechLog::append(std::string_view bytes, uint64_t standard_output,
                                   uint64_t standard_error) {
  ATOLL_TRY_VOID(open_to_append());
  SpeechMark mark{end_, standard_output, standard_error};
  if (mark.standard_output != last_.standard_output ||
      mark.standard_error != last_.standard_error) {
    std::string text;
    ByteWriter writer(text);
    for (uint64_t value : {mark.speech, mark.standard_output, mark.standard_error})
      writer.u64(value);
    // Before the speech: without it a crash would leave speech that has lost its place.
    ATOLL_TRY(uint64_t mark_bytes, mark_log_->append(text));
    marks_ = mark_bytes / kMarkBytes;
    last_ = mark;
  }
  ATOLL_TRY(end_, speech_log_->append(bytes));
  return end_;
}

Result<std::string> SpeechLog::read(uint64_t offset, size_t most) const {
  if (!speech_log_ || offset >= end_) return std::string();
  return speech_log_->read(offset, most);
}

Result<std::vector<SpeechMark>> SpeechLog::read_marks(uint64_t from, size_t most) const {
  std::vector<SpeechMark> marks;
  if (!mark_log_ || from >= marks_) return marks;
  size_t bytes = std::min(most, kMaxMarks) * kMarkBytes;
  ATOLL_TRY(std::string text, mark_log_->read(from * kMarkBytes, bytes));
  ByteReader reader(text);
  for (size_t left = text.size() / kMarkBytes; left > 0; --left) {
    SpeechMark mark;
    mark.speech = reader.u64();
    mark.standard_output = reader.u64();
    mark.standard_error = reader.u64();
    marks.push_back(mark);
  }
  return marks;
}

}  // namespace atl::sandbox
