#include "agent/sudo_desk.h"

#include <sys/socket.h>

#include <algorithm>

namespace atl::agent {
namespace {

// Clients that have not asked yet; more are left in the backlog. sudo asks at once, so who does not
// is sent away.
constexpr size_t kMaxWaiting = 16;
constexpr auto kRequestTime = std::chrono::seconds(2);
constexpr size_t kMaxRunning = 64;

SteadyTime now() { return std::chrono::steady_clock::now(); }

}  // namespace

void SudoDesk::add_watches(PollSet& polls) const {
  if (listener_ && count(SudoCall::Phase::kWaiting) < kMaxWaiting)
    polls.add(listener_.get(), POLLIN, {Source::kSudoListener});
  for (const auto& [number, call] : calls_)
    polls.add(call.fd(), POLLIN, {Source::kSudoCall, number});
}

void SudoDesk::handle(Watch watch, ExecTable& execs) {
  if (watch.source == Source::kSudoListener)
    accept_some();
  else
    receive(watch.exec, execs);
}

void SudoDesk::accept_some() {
  for (size_t i = count(SudoCall::Phase::kWaiting); i < kMaxWaiting; ++i) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    int on = 1;  // so that each message says who sent it
    (void)setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    while (calls_.contains(++last_number_)) {
    }
    calls_.try_emplace(last_number_, std::move(socket), now() + kRequestTime);
  }
}

void SudoDesk::receive(uint32_t number, ExecTable& execs) {
  auto found = calls_.find(number);
  if (found == calls_.end()) return;
  SudoCall& call = found->second;
  if (call.phase() == SudoCall::Phase::kRunning)
    call.take_signal();
  else if (auto command = call.take_request(); command && has_room())
    call.start(*command, execs);
  else if (command)
    call.refuse(Error(Code::kExhausted, "start so many commands at once", EAGAIN));
  if (call.phase() == SudoCall::Phase::kOver) calls_.erase(found);
}

void SudoDesk::reaped(const ReapedChild& child) {
  auto is_its_own = [&](const auto& entry) { return entry.second.pid() == child.pid; };
  auto found = std::find_if(calls_.begin(), calls_.end(), is_its_own);
  if (found == calls_.end()) return;
  found->second.reaped(child.wait_status);
  calls_.erase(found);
}

std::optional<SteadyTime> SudoDesk::next_deadline() const {
  for (const auto& [number, call] : calls_)
    if (call.phase() == SudoCall::Phase::kWaiting)
      return call.deadline();  // the oldest comes first
  return std::nullopt;
}

void SudoDesk::check_deadlines() {
  std::erase_if(calls_, [current = now()](const auto& entry) {
    return entry.second.phase() == SudoCall::Phase::kWaiting && entry.second.deadline() <= current;
  });
}

bool SudoDesk::has_room() const { return count(SudoCall::Phase::kRunning) < kMaxRunning; }

size_t SudoDesk::count(SudoCall::Phase phase) const {
  auto is_in_it = [phase](const auto& entry) { return entry.second.phase() == phase; };
  return static_cast<size_t>(std::count_if(calls_.begin(), calls_.end(), is_in_it));
}

}  // namespace atl::agent
