// The worker's end of a channel: records out, records in, on a blocking socket.
//
// Also how the operations say what failed: an Error whose message is the operation alone ("open")
// and whose field is the path it was about, if that is not the request's.
#pragma once

#include <string>
#include <string_view>

#include "agent/file_protocol.h"
#include "base/result.h"

namespace atl::agent {

// From errno as it stands now.
Error file_error(std::string_view operation, std::string_view path = {});
Error file_error(int system_errno, std::string_view operation, std::string_view path = {});

class FileWire {
 public:
  explicit FileWire(int socket) : socket_(socket) {}

  // Small records are sent together; flush() sends what waits.
  Result<void> send(std::string_view record);
  Result<void> send_bytes(std::string_view bytes);
  Result<void> flush();

  // The next record, valid until the next call. The end of the channel is an error.
  Result<FileRecord> receive();

  int socket() const { return socket_; }

 private:
  Result<void> send_all(std::string_view bytes);

  int socket_;
  std::string outgoing_;
  RecordReader reader_;
};

}  // namespace atl::agent
