#include "agent/file_worker.h"

#include <linux/close_range.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/file_change.h"
#include "agent/file_find.h"
#include "agent/file_list.h"
#include "agent/file_pack.h"
#include "agent/file_ports.h"
#include "agent/file_read.h"
#include "agent/file_remove.h"
#include "agent/file_unpack.h"
#include "agent/file_watch.h"
#include "agent/file_wire.h"
#include "agent/file_write.h"
#include "linux/descriptors.h"

namespace atl::agent {
namespace {

Result<uint8_t> without_flags(Result<void> done) {
  if (!done) return std::move(done).error();
  return uint8_t{0};
}

// Gives DoneFlags.
Result<uint8_t> perform(const FileRequest& request, FileWire& wire) {
  switch (request.operation) {
    case FileOperation::kStat:
      return without_flags(stat_file(request, wire));
    case FileOperation::kList:
      return without_flags(list_directory(request, wire));
    case FileOperation::kRead:
      return without_flags(read_range(request, wire));
    case FileOperation::kWrite:
      return write_file(request, wire);
    case FileOperation::kMove:
      return move_file(request, wire);
    case FileOperation::kRemove:
      return without_flags(remove_file(request));
    case FileOperation::kMakeDirectory:
      return make_directory_at(request, wire);
    case FileOperation::kChange:
      return change_file(request, wire);
    case FileOperation::kFind:
      return find_files(request, wire);
    case FileOperation::kWatch:
      return without_flags(watch_files(request, wire));
    case FileOperation::kPack:
      return without_flags(pack_tree(request, wire));
    case FileOperation::kUnpack:
      return without_flags(unpack_tree(request, wire));
    case FileOperation::kPorts:
      return without_flags(list_ports(wire));
    case FileOperation::kTree:
      return without_flags(list_tree(request, wire));
    case FileOperation::kPick:
      return without_flags(pick_files(request, wire));
    case FileOperation::kRestore:
      return without_flags(restore_tree(request, wire));
  }
  return file_error(EOPNOTSUPP, "perform");
}

FileFailure failure_of(const Error& error) {
  // Only what the daemon sent can be wrong without an errno.
  int system_errno = error.system_errno() == 0 ? EPROTO : error.system_errno();
  return {system_errno, error.message(), error.field().substr(0, kMaxPathBytes)};
}

}  // namespace

void run_file_worker(int socket, const FileRequest& request) {
  // It holds a copy of the agent's memory, which no program may look into.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) _exit(127);
  // It lives for one operation: the agent's thrift would cost it a mapping for each buffer.
  mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
  mallopt(M_TRIM_THRESHOLD, 16 * 1024 * 1024);
  close_range(STDERR_FILENO + 1, linux::kHighestDescriptor, 0);
  FileWire wire(socket);
  auto done = perform(request, wire);
  auto last =
      done ? wire.send(encode_done(*done)) : wire.send(encode_record(failure_of(done.error())));
  _exit(last.ok() && wire.flush().ok() ? 0 : 1);
}

void refuse_file_work(int socket, std::string_view operation, int system_errno) {
  FileWire wire(socket);
  auto sent = wire.send(encode_record(FileFailure{system_errno, std::string(operation), ""}));
  _exit(sent.ok() && wire.flush().ok() ? 0 : 1);
}

}  // namespace atl::agent
