// ExecControl: what clients do to the running execs of one sandbox: signals, the size of a
// terminal, input. Frames go to the agent's current stream; without one they are refused, except
// input, which waits for the next stream and is sent there from where the agent has got.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "isolate/agent_link.h"
#include "sandbox/channel.h"
#include "sandbox/exec.h"
#include "sandbox/waiting_program.h"

namespace atl::sandbox {

class ExecControl {
 public:
  // A stream is up, until link_lost().
  void link_up(std::shared_ptr<isolate::AgentLink> link);
  void link_lost() {
    link_.reset();
    waiting_.reset();  // it does not outlive the connection that could have told it to begin
  }

  // Nothing happens without a stream: start frames are sent again on the next.
  void start(const std::string& start_frame) const;
  // An interpreter that waits in the sandbox. The channels are the sandbox's.
  void set_waiting(WaitingProgram waiting, Channels& channels);
  // It becomes the next exec, if that is such a request, or goes, and its number with it: numbers
  // are used in order.
  std::optional<WaitingProgram> take_waiting(const ExecRequest& request, uint32_t& next_number);
  void begin(const WaitingProgram& waiting, const ExecRequest& request, const Exec& exec);
  // Lets the output of an exec that has begun get so far, also on the next stream.
  void grant(const Exec& exec, agent::Grant grant);
  // The agent has ended the exec of that number.
  void forget(uint32_t number);
  Result<void> signal(const Exec& exec, int signal_number) const;
  Result<void> resize(const Exec& exec, agent::TerminalSize size) const;

  // The right to add to an exec's input; the next caller waits until it is destroyed.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Exec> exec);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Exec& exec() const { return *exec_; }

   private:
    std::shared_ptr<Exec> exec_;
  };
  // Returns when it is the caller's turn, the agent has said how far the input has got and has
  // taken what the caller before left under way.
  Task<Result<std::unique_ptr<Turn>>> take_turn(std::shared_ptr<Exec> exec) const;
  // Adds bytes behind what was taken; returns when the agent has taken them all. kConflict: its
  // input is closed or it has ended. kUnavailable: no stream for too long. kCancelled: the caller's
  // coroutine was cancelled. In each case input().taken says what was taken.
  Task<Result<void>> write(const Turn& turn, std::string_view bytes) const;
  // Ends the input; returns when the agent has closed it.
  Task<Result<void>> end_input(const Turn& turn) const;

 private:
  bool can_send(const Exec& exec, unsigned long sent_on) const;
  // kCancelled when the caller was; kUnavailable when no stream comes up.
  Task<Result<void>> wait(Exec& exec) const;
  // Returns when the agent has taken what is pending.
  Task<Result<void>> send_pending(Exec& exec) const;

  std::shared_ptr<isolate::AgentLink> link_;
  std::optional<WaitingProgram> waiting_;
  std::map<uint32_t, agent::Grant> grants_;
  Channels* channels_ = nullptr;  // set with it
  unsigned long streams_ = 0;     // how many there were: what was sent on an older one may be lost
};

}  // namespace atl::sandbox
