// ExecTable: the live execs of one sandbox, and what each frame of its agent does to them. An exec
// enters when its row is stored and leaves when its verdict is; what has ended is read from the
// ledger.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/clock.h"
#include "base/unstepped_time.h"
#include "isolate/agent_link.h"
#include "sandbox/exec.h"
#include "sandbox/exec_control.h"
#include "sandbox/ledger.h"
#include "sandbox/own_time.h"
#include "sandbox/tally.h"
#include "store/artifacts.h"
#include "store/output_log.h"

namespace atl::sandbox {

// What the inside of atolld stands on. Outlives every sandbox.
class Sandbox;
class Volumes;

struct Services {
  boost::asio::any_io_executor executor;
  isolate::Driver& driver;
  Ledger& ledger;
  const Clock& clock;
  store::OutputLogs& outputs;
  store::Artifacts& artifacts;
  UnsteppedTime expiry_time{clock};  // for what is kept for a time
  // How much longer than an exec's own time limit atolld waits for its end.
  std::chrono::milliseconds silence_grace{30'000};
  Tally tally = {};
  // Keeps what a sandbox holds now, under a label: see sandbox/snapshots.h.
  std::function<Task<Result<void>>(std::shared_ptr<Sandbox>, std::string)> checkpoint = {};
  // Gives a paused sandbox an isolate that has none: see Sandboxes::bring_back.
  std::function<Task<Result<void>>(std::shared_ptr<Sandbox>)> bring_back = {};
  // What the policies of a tenant's sandboxes have where they say nothing: see sandbox/tenants.h.
  std::function<std::string(store::TenantId)> tenant_network = {};
  // How many bytes a tenant's sealed snapshots may have together; the same.
  std::function<uint64_t(store::TenantId)> sealed_share = {};
  Volumes* volumes = nullptr;  // those of whoever has the sandboxes
  // What an exec that nobody asked for is shown as, in JSON.
  std::function<std::string(const ExecRequest&)> describe = {};
};

class ExecTable {
 public:
  // `break_talk`: ends the agent's stream, which is then taken up again or, after a silence(), not.
  // Borrows the time of the sandbox.
  ExecTable(Services& services, const store::SandboxRow& row, const OwnTime& time,
            std::function<void()> break_talk);

  // Sends the start frame, and keeps it until the agent has confirmed; stores the row at the same
  // time. Returns when it is stored: until then nobody may learn of the exec.
  // A waiting program that fits the request becomes its program.
  Task<Result<std::shared_ptr<Exec>>> create(ExecRequest request, std::string description);
  // Takes up execs that ran when atolld stopped.
  Result<void> adopt(store::ExecRow row, uint64_t output_limit_bytes, ExecKind kind);

  std::shared_ptr<Exec> find_live(ExecId id) const;
  // Live or ended, with its output; nothing if there is none.
  Task<Result<std::shared_ptr<Exec>>> open(ExecId id);
  // The row alone, live or ended.
  Task<Result<std::optional<store::ExecRow>>> find(ExecId id);
  Task<Result<std::vector<store::ExecRow>>> list(std::optional<ExecId> after, size_t limit);
  // How many programs of callers run, which the interpreters of contexts are not.
  size_t running() const;
  // When the last one that ended did; before any time if none has.
  SteadyTime last_end() const { return last_end_; }
  // None has run that could have left any.
  bool have_no_outputs() const;

  // After a hello: what to welcome, having ended the execs that the agent does not know and cannot
  // learn of.
  Task<Result<agent::Welcome>> welcome(agent::Hello hello);
  // Sends the start frames that no agent has confirmed; starting is idempotent.
  void send_unconfirmed(isolate::AgentLink& link) const;
  // Carries out one frame. An error means that the agent broke the protocol or the disk failed.
  Task<Result<void>> handle(agent::Frame frame, isolate::AgentLink& link);

  Task<void> end_all(Verdict verdict, std::string failure);

  ExecControl& control() { return control_; }
  // Not empty: the agent has not ended an exec that it should have, long after its time was up. It
  // cannot be trusted to say anything true about the others either.
  const std::string& silence() const { return silence_; }

 private:
  friend class Sandboxes;  // goes on with its numbers when the sandbox is made anew
  struct Entry {
    std::shared_ptr<Exec> exec;
    std::unique_ptr<boost::asio::steady_timer> patience;  // with the agent
    std::string start_frame = {};                         // empty once confirmed
  };

  std::shared_ptr<Exec> begin(store::ExecRow row, ExecRequest request,
                              std::optional<WaitingProgram> waiting);
  // Makes its entry, which waits for the agent until `patience` is over: that of a program.
  Entry& enter(std::shared_ptr<Exec> exec, std::chrono::milliseconds patience);
  void await_end(std::shared_ptr<Exec> exec, boost::asio::steady_timer& patience,
                 SteadyTime deadline);
  Task<Result<void>> finish(std::shared_ptr<Exec> exec, store::ExecRow row);
  void count(const store::ExecRow& ended);
  void leave(const Exec& exec);
  Task<Result<bool>> has_ended_at(agent::ExecOffsets produced);
  Task<Result<void>> handle_exit(agent::Frame frame, isolate::AgentLink& link);
  store::ExecRow unstarted_row(const Exec& exec, const agent::StartFailed& failed) const;
  Task<Result<void>> handle_start_failed(agent::Frame frame, isolate::AgentLink& link);
  Task<Result<void>> carry_out(agent::Frame frame, isolate::AgentLink& link);
  Result<void> handle_output(const agent::Frame& frame);
  void acknowledge_output(isolate::AgentLink& link);
  void stop_output(const Exec& exec);
  Result<void> handle_input_taken(const agent::Frame& frame);
  Entry* entry_of(uint32_t number);

  Services& services_;
  SandboxId sandbox_;
  store::TenantId tenant_;
  const OwnTime& time_;
  std::function<void()> break_talk_;
  std::string silence_;
  ExecControl control_;
  uint32_t next_number_;
  uint16_t agent_version_ = agent::kProtocolVersion;
  // Output that is on disk and not acknowledged yet, by exec and stream.
  std::map<std::pair<uint32_t, agent::Stream>, uint64_t> owed_;
  std::map<uint32_t, Entry> live_;
  SteadyTime last_end_ = SteadyTime::min();
  bool saw_outputs_;  // or may have, before atolld was started
};

}  // namespace atl::sandbox
