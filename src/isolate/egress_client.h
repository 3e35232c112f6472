// EgressClient: tells atoll-egress which sandboxes there are and what each may reach, over one
// connection that is dialled again whenever it breaks. It remembers what it told, so that an egress
// that was started again is told the same; the sockets of each sandbox's network are then made
// anew. While egress is away, nothing leaves any sandbox.
//
// One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>

#include "async/task.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "egress/text_call.h"
#include "isolate/event.h"

namespace atl::isolate {

struct EgressPage {
  std::vector<std::string> rows;  // JSON objects
  uint64_t next = 0;
};

// Something about authorities or secrets that is asked and answered by text.
struct EgressCall {
  egress::Operation operation = egress::kShowAuthority;
  std::optional<SandboxId> sandbox = {};
  uint64_t tenant = 0;
  std::string text = {};
};

class EgressClient {
 public:
  using Sockets = std::vector<Fd>;
  // Gives the sockets of a sandbox anew.
  using Reopen = std::function<Task<Result<Sockets>>(SandboxId)>;

  // `run_directory` holds egress/egress.sock.
  EgressClient(boost::asio::any_io_executor executor, std::string run_directory, Reopen reopen);
  ~EgressClient();

  // A sandbox that is new: everything is denied until set_policy().
  Task<void> open(SandboxId id, Sockets sockets);
  // kUnavailable with reason egress_unavailable: egress does not answer. It is told when it does.
  Task<Result<void>> set_policy(SandboxId id, uint64_t tenant, std::string policy);
  Task<void> close(SandboxId id);
  // The same for a sandbox that will have a network again: it goes on with what it has spent.
  Task<void> suspend(SandboxId id);
  Task<Result<EgressPage>> read(SandboxId id, uint64_t offset);
  // The text of the answer. kUnavailable with reason egress_unavailable, kNotFound, kInvalid.
  // Nothing of it is remembered.
  Task<Result<std::string>> call(EgressCall call);
  // Forgets the rows of a sandbox that is gone.
  Task<void> forget(SandboxId id);

  // Keeps up the connection, for the life of this process. To be called when every sandbox that was
  // there before has been named by set_policy(): egress closes all others.
  Task<void> run();

 private:
  struct Told {
    uint64_t tenant = 0;
    std::string policy = "{}";
  };
  struct Pending;
  struct Link;

  Result<std::shared_ptr<Link>> connect();
  Task<void> read_replies(std::shared_ptr<Link> link);
  Task<Result<egress::Reply>> ask(egress::Request request, Sockets sockets);
  Task<void> end(SandboxId id, egress::Operation operation);
  Task<void> tell_all();
  Task<void> tell(SandboxId id);
  Task<void> pause();

  boost::asio::any_io_executor executor_;
  std::string directory_;
  Reopen reopen_;
  uint64_t next_request_ = 1;
  std::map<SandboxId, Told> told_;
  std::shared_ptr<Link> link_;  // shared with its reading task
  Event broken_;
};

}  // namespace atl::isolate
