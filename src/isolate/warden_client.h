// WardenClient: requests to atoll-warden and their replies, matched by request id, over one
// SEQPACKET connection that is dialled when first needed and again after it broke. A request whose
// connection breaks fails with kUnavailable: the caller cannot know whether it was carried out, so
// it must be one that can be repeated or undone (launch is undone by remove; remove, list and
// limits can be repeated). The same becomes of all when the warden's loop stands still.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>

#include "async/task.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "isolate/event.h"
#include "isolate/peer_watch.h"
#include "warden/protocol.h"

namespace atl::isolate {

class WardenClient {
 public:
  struct Answer {
    warden::Reply reply;
    std::vector<SandboxId> ids;
    std::vector<SnapshotId> snapshots;
    std::vector<VolumeId> volumes;
    std::string receipt;
    std::vector<Fd> sockets;  // of a launch, or made anew: warden::kReplySockets
  };

  // `run_directory` holds warden.sock. The watch must outlive it.
  WardenClient(boost::asio::any_io_executor executor, std::string run_directory,
               const PeerWatch& watch);
  ~WardenClient();

  // Fills in magic, version and request id.
  Task<Result<Answer>> ask(warden::Request request);
  Task<Result<Answer>> ask(warden::Message message);
  void close();

 private:
  struct Pending;
  struct Link;
  Result<Fd> connect_to_warden() const;
  Result<std::shared_ptr<Link>> ensure_link();
  static Task<void> read_replies(std::shared_ptr<Link> link);
  void stamp(warden::Request& request);
  Task<Result<Answer>> ask_bytes(uint64_t request_id, std::string message);
  static Task<Result<void>> send(std::shared_ptr<Link> link, std::string message);

  boost::asio::any_io_executor executor_;
  std::string run_directory_;
  const PeerWatch& watch_;
  uint64_t next_request_id_ = 1;
  std::shared_ptr<Link> link_;  // shared with its reading task, which may outlive a reconnect
};

}  // namespace atl::isolate
