// Sandbox: what a user created, from its row to its end, as one state machine:
//
//                 paused ─────────┐       see sandbox/pause.h
//                  ▲ │            │
//                  │ ▼            ▼
//   creating ──▶ running ──▶ deleting ──▶ (gone)
//                   │            ▲
//                   └─▶ failed ──┘        its agent died or broke the protocol
//
// While running or paused, one task holds the talk with the agent: connect, hello, welcome, frames;
// when the stream breaks it connects again, and only when nobody answers any more is the sandbox
// failed.
//
// Lives on the io_context thread. Held by shared_ptr because its talk and suspended handlers may
// outlive its entry in Sandboxes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "isolate/agent_link.h"
#include "sandbox/admission.h"
#include "sandbox/channel.h"
#include "sandbox/contexts.h"
#include "sandbox/exec_table.h"
#include "sandbox/lifetime.h"
#include "sandbox/volumes.h"
#include "store/catalog.h"

namespace atl::sandbox {

// An agent that was greeted before its sandbox had a user, and what waits there.
struct WarmAgent {
  std::shared_ptr<isolate::AgentLink> link;
  std::optional<WaitingProgram> waiting;
};

enum class State : unsigned char { kCreating, kRunning, kPaused, kFailed, kDeleting };

std::string_view state_name(State state);

class Sandbox : public std::enable_shared_from_this<Sandbox> {
 public:
  // `due` is told when the sandbox has failed and waits to be freed.
  Sandbox(Services& services, store::SandboxRow row, Reservation reservation, Event& due);

  SandboxId id() const { return row_.id; }
  const store::SandboxRow& row() const { return row_; }
  State state() const { return state_; }
  Lifetime& lifetime() const { return lifetime_; }

  // Begins the talk with the agent, which goes on by itself.
  void begin_talk();
  // The same; returns when the first hello has been answered.
  Task<Result<void>> attach();
  // The same with an agent that is greeted.
  void attach(WarmAgent agent);
  void set_running();

  // Wakes it, if it may be.
  Task<Result<std::shared_ptr<Exec>>> start_exec(ExecRequest request, std::string description);
  ExecTable& execs() { return execs_; }
  Contexts& contexts() { return contexts_; }
  Channels& channels() { return channels_; }

  // Takes limits, ttls and metadata from `row`; what was promised to it grows or shrinks with them.
  // kExhausted: the host cannot promise that much, and nothing was changed.
  Result<void> apply(const store::SandboxRow& row);

  // Ends the talk and every exec, for good. The isolate is removed by the caller.
  Task<void> begin_deletion(std::string why = "the sandbox was deleted");

  bool isolate_removed() const { return isolate_removed_; }
  // What was promised to it is given back.
  void set_isolate_removed();

 private:
  friend class Pause;
  friend class Sandboxes;  // makes it anew
  friend Error not_running(const Sandbox& sandbox);
  friend bool holds_memory(const Sandbox& sandbox);

  // Keeps what it holds now, if it was created so.
  Task<Result<void>> checkpoint(std::string label);
  static Task<void> talk(std::shared_ptr<Sandbox> self);
  Task<Result<void>> talk_once();
  Task<Result<std::shared_ptr<isolate::AgentLink>>> connect();
  void link_up(std::shared_ptr<isolate::AgentLink> link);
  Task<Result<void>> greet(isolate::AgentLink& link);
  void break_talk();
  Task<Result<void>> handle(agent::Frame frame, isolate::AgentLink& link);
  Task<void> lose_agent(Error why);
  Task<std::string> why_ended(Error seen);
  // `verdict` is that of all that runs in it.
  Task<void> fail(std::string failure, Verdict verdict = Verdict::kSandboxGone);
  bool talks() const {
    return state_ != State::kFailed && state_ != State::kDeleting && !agent_lost_;
  }

  Services& services_;
  store::SandboxRow row_;
  Reservation reservation_;
  VolumeClaim volumes_;
  State state_ = State::kCreating;
  OwnTime time_;
  ExecTable execs_;
  Channels channels_;
  Contexts contexts_;
  mutable Lifetime lifetime_;  // after what it borrows; to look at a sandbox is to use it
  std::shared_ptr<isolate::AgentLink>
      link_;  // the current stream, if one is up; shared with its reader
  bool greeted_ = false;
  bool isolate_removed_ = false;
  bool replaced_ = false;      // another one has its id now
  bool agent_lost_ = false;    // while it was being brought back
  bool isolate_left_ = false;  // its memory is being given back, which has not come to its end
  bool in_turn_ = false;       // see Pause::Turn
  Event changed_;
  Event& due_;
};

// Why nothing can be started in it.
Error not_running(const Sandbox& sandbox);

// False: it is paused, and all that is left of it is on disk.
bool holds_memory(const Sandbox& sandbox);

}  // namespace atl::sandbox
