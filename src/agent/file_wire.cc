#include "agent/file_wire.h"

#include <sys/socket.h>

namespace atl::agent {
namespace {

constexpr size_t kSendBytes = 64 * 1024;
constexpr size_t kReceiveBytes = 64 * 1024;

}  // namespace

Error file_error(int system_errno, std::string_view operation, std::string_view path) {
  return Error(Code::kSystem, std::string(operation), system_errno).with_field(path);
}

Error file_error(std::string_view operation, std::string_view path) {
  return file_error(errno, operation, path);
}

Result<void> FileWire::send(std::string_view record) {
  outgoing_.append(record);
  if (outgoing_.size() < kSendBytes) return {};
  return flush();
}

Result<void> FileWire::send_bytes(std::string_view bytes) {
  ATOLL_TRY_VOID(send(encode_record_header(RecordType::kBytes, bytes.size())));
  if (outgoing_.size() + bytes.size() < kSendBytes) return send(bytes);
  ATOLL_TRY_VOID(flush());
  return send_all(bytes);
}

Result<void> FileWire::flush() {
  ATOLL_TRY_VOID(send_all(outgoing_));
  outgoing_.clear();
  return {};
}

Result<void> FileWire::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("send");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<FileRecord> FileWire::receive() {
  while (true) {
    ATOLL_TRY(auto record, reader_.next());
    if (record) return *record;
    char bytes[kReceiveBytes];
    ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("receive");
    if (count == 0) return file_error(ECANCELED, "receive");
    reader_.add({bytes, static_cast<size_t>(count)});
  }
}

}  // namespace atl::agent
