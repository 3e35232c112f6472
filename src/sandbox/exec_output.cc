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
  ATOLL_TRY(dropped_, logs_.dropped(sandbox_, exec_));
  return speech_.adopt();
}

Result<uint64_t> ExecOutput::append(agent::Stream which, std::string_view bytes) {
  Result<void> kept;
  if (dropped(which) == 0) kept = keep(which, bytes);
  if (dropped(which) == 0 && kept) return taken(which);
  if (!kept && kept.error().code() != Code::kExhausted) return std::move(kept).error();
  store::DroppedOutput dropped = dropped_;
  dropped[static_cast<size_t>(which)] += bytes.size();
  // Before it is acknowledged: after a restart it is not there to be sent again.
  ATOLL_TRY_VOID(logs_.set_dropped(sandbox_, exec_, dropped));
  dropped_ = dropped;
  return taken(which);
}

Result<void> ExecOutput::keep(agent::Stream which, std::string_view bytes) {
  if (which == agent::Stream::kSpeech) {
    ATOLL_TRY([[maybe_unused]] uint64_t end,
              speech_.append(bytes, streams_[0].end, streams_[1].end));
    return {};
  }
  Stream& stream = streams_[index_of(which)];
  if (!stream.can_append) {
    ATOLL_TRY(store::OutputLog log, logs_.open_log(sandbox_, exec_, kKinds[index_of(which)]));
    stream.log = std::move(log);
    stream.can_append = true;
  }
  ATOLL_TRY(stream.end, stream.log->append(bytes));
  return {};
}

Result<std::string> ExecOutput::read(agent::Stream which, uint64_t offset, size_t most) const {
  if (which == agent::Stream::kSpeech) return speech_.read(offset, most);
  const Stream& stream = streams_[index_of(which)];
  if (!stream.log || offset >= stream.end) return std::string();
  return stream.log->read(offset, most);
}

}  // namespace atl::sandbox
