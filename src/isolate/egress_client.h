// EgressClient: tells atoll-egress which sandboxes there are and what each may reach, over one
// connection that is dialled again whenever it breaks. It remembers what it told, so that an egress
// that was started again is told the same; the sockets of each sandbox's network are then made
// anew. While egress is away, nothing leaves any sandbox.
//
// A policy is in force when set_policy() has succeeded. After an error either it or nothing is, in
// the end: an egress that did not hear of it is first told, when it is there again, to let nothing
// pass, and then what holds.
//
// One thread.
#pragma once

#include <chrono>
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
#include "egress/health.h"
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

  // To be asked before a sandbox is made. kExhausted with reason host_full: egress has no
  // descriptors for it. kUnavailable with reason egress_unavailable: it does not answer. One that
  // does not run at all has room when it does.
  Task<Result<void>> check_room();
  // A sandbox that is new: everything is denied until set_policy(). kExhausted with reason
  // host_full; what else fails is made good later.
  Task<Result<void>> open(SandboxId id, Sockets sockets);
  // kUnavailable with reason egress_unavailable: egress does not answer, or cannot. It is told
  // again until it has it in force. To deny everything to a sandbox that was never allowed anything
  // succeeds without it.
  Task<Result<void>> set_policy(SandboxId id, uint64_t tenant, std::string policy);
  Task<void> close(SandboxId id);
  // The same for a sandbox that will have a network again: it goes on with what it has spent.
  Task<void> suspend(SandboxId id);
  Task<Result<EgressPage>> read(SandboxId id, uint64_t offset);
  // The text of the answer. kUnavailable with reason egress_unavailable, kNotFound, kInvalid.
  // Nothing of it is remembered.
  Task<Result<std::string>> call(EgressCall call);
  using Deadline = std::chrono::steady_clock::time_point;
  // Whether it is well. kUnavailable with reason egress_unavailable: it does not run, or does not
  // answer by then.
  Task<Result<egress::Health>> check(Deadline deadline);
  // Forgets the rows of a sandbox that is gone.
  Task<void> forget(SandboxId id);

  // Keeps up the connection, for the life of this process. To be called when every sandbox that was
  // there before has been named by set_policy(): egress closes all others.
  Task<void> run();

 private:
  struct Told {
    uint64_t tenant = 0;
    std::string policy = "{}";
    bool allows_nothing = false;  // nor has it since egress last had it in force
    bool is_untold = false;       // to be told again
    bool is_doubtful = false;     // the same, and egress may hold it to an older one
    bool has_failed = false;      // and that was said
    uint64_t changes = 0;
  };
  struct Pending;
  struct Link;

  Result<std::shared_ptr<Link>> connect();
  bool link_up();
  Task<void> read_replies(std::shared_ptr<Link> link);
  Task<Result<egress::Reply>> ask(egress::Request request, Sockets sockets);
  Task<Result<egress::Reply>> ask(egress::Request request, Sockets sockets, Deadline deadline);
  Task<void> send_rest(std::shared_ptr<Link> link);
  Task<void> end(SandboxId id, egress::Operation operation);
  Task<void> tell_all();
  Task<void> tell_untold();
  Task<Result<void>> tell(SandboxId id);
  Task<Result<void>> serve(SandboxId id, Sockets sockets);
  Task<void> pause();

  boost::asio::any_io_executor executor_;
  std::string directory_;
  Reopen reopen_;
  uint64_t next_request_ = 1;
  std::map<SandboxId, Told> told_;
  std::shared_ptr<Link> link_;  // shared with its reading task
  Event broken_;
  bool has_begun_ = false;  // run() was called
};

}  // namespace atl::isolate
