#include "sandbox/exec_output.h"

namespace atl::sandbox {

constexpr store::OutputStream kKinds[] = {store::OutputStream::kStdout,
                                          store::OutputStream::kStderr};

Result<void> ExecOutput::adopt() {
  for (size_t i = 0; i < streams_.size(); ++i) {
    ATOLL_TRY(streams_[i].log, logs_.find_log(sandbox_, exec_, kKinds[i]));
    if (!streams_[i].log) continue;
    ATOLL_TRY(streams_[i].end, streams_[i].log->size());
  }
  return speech_.adopt();
}

Result<uint64_t> ExecOutput::append(agent::Stream which, std::string_view bytes) {
  if (which == agent::Stream::kSpeech)
    return speech_.append(bytes, streams_[0].end, streams_[1].end);
  Stream& stream = streams_[index_of(which)];
  if (!stream.can_append) {
    ATOLL_TRY(store::OutputLog log, logs_.open_log(sandbox_, exec_, kKinds[index_of(which)]));
    stream.log = std::move(log);
    stream.can_append = true;
  }
  ATOLL_TRY(stream.end, stream.log->append(bytes));
  return stream.end;
}

Result<std::string> ExecOutput::read(agent::Stream which, uint64_t offset, size_t most) const {
  if (which == agent::Stream::kSpeech) return speech_.read(offset, most);
  const Stream& stream = streams_[index_of(which)];
  if (!stream.log || offset >= stream.end) return std::string();
  return stream.log->read(offset, most);
}

}  // namespace atl::sandbox
