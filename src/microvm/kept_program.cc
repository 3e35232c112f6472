#include "microvm/kept_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "agent/leaf.h"
#include "base/file.h"
#include "linux/pidfd.h"
#include "microvm/dialler.h"
#include "microvm/passage.h"

namespace atl::microvm {
namespace {

constexpr int kRestPauseMs = 200;  // of silence, before it is frozen
constexpr int kRebirthMs = 60'000;

// Accepts whoever connects; the newest wins.
Result<void> accept_newest(int listener, Relay& relay) {
  while (true) {
    Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      relay.open(std::move(socket));
      continue;
    }
    bool none = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    return none ? Result<void>() : Error::system("accept");
  }
}

Result<Passage> open_passage(Fd port) {
  if (fcntl(port.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("fcntl");
  return Passage(std::move(port), dial_inside);
}

void discard_output(Fd& pipe) {
  char bytes[4096];
  ssize_t count = read(pipe.get(), bytes, sizeof bytes);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) pipe.reset();
}

}  // namespace

Result<agent::Launched> KeptPrograms::start(uint32_t number, std::vector<std::string> words,
                                            int input, agent::Becomes becomes) {
  agent::Start start = {.arguments = std::move(words),
                        .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"},
                        .directory = "/",
                        .user = fmt::format("{0}:{0}", kKeptUser),
                        .control = agent::ControlMode::kSpeaks};
  agent::Leaf leaf(cgroup_, number);
  std::string payload = agent::encode(number, start).substr(agent::kHeaderBytes);
  return launcher_.launch(leaf, start, payload, input, becomes);
}

Result<void> KeptPrograms::run(uint32_t number, std::vector<std::string> words) {
  std::string name = words[0];
  ATOLL_TRY(agent::Launched launched, start(number, std::move(words), launcher_.null_device()));
  ATOLL_TRY(int status, linux::wait_for_exit(launched.pidfd.get()));
  agent::Leaf(cgroup_, number).remove();
  if (status == 0) return {};
  auto said = read_all(launched.stderr_pipe.get());
  return Error(Code::kUnavailable, fmt::format("{} ended with {}: {}", name, status,
                                               said.ok() ? *said : std::string()));
}

KeptProgram::KeptProgram(agent::Launched launched, Fd port, agent::Leaf leaf)
    : launched_(std::move(launched)), port_(std::move(port)), leaf_(leaf) {}

// A kernel that cannot freeze it costs some processor time, no more. One that does not stand still
// is tried again.
void KeptProgram::rest() {
  if (standstill_.begin && !standstill_.begin()) return;
  rests_ = may_rest_ = leaf_.freeze().ok();
  if (!rests_ && standstill_.end) (void)standstill_.end();
}

Result<void> KeptProgram::go_on(Relay& relay) {
  if (!std::exchange(rests_, false)) return {};
  ATOLL_TRY_VOID(leaf_.thaw());
  if (!standstill_.end) return {};
  relay.stood_still();
  return standstill_.end();
}

Result<void> KeptProgram::keep(int listener, const std::function<void()>& ready,
                               LyingDown lying_down) {
  if (fcntl(port_.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("fcntl");
  return pass_on(Relay(std::move(port_), lying_down), listener, ready);
}

Result<void> KeptProgram::keep_reborn(int listener, const Rebirth& rebirth, Fd first) {
  for (int fd : {port_.get(), first.get()})
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return Error::system("fcntl");
  Relay relay(std::move(port_), rebirth);
  relay.open(std::move(first));
  return pass_on(std::move(relay), listener, [] {});
}

Result<void> KeptProgram::end() {
  ATOLL_TRY_VOID(leaf_.kill());
  ATOLL_TRY([[maybe_unused]] int status, linux::wait_for_exit(launched_.pidfd.get()));
  return {};
}

Result<void> KeptProgram::pass_on(Relay relay, int listener, const std::function<void()>& ready) {
  ATOLL_TRY(std::optional<Passage> passage, open_passage(std::move(launched_.control)));
  relay.offer_files(files_);
  bool told = false;
  while (!linux::has_ended(launched_.pidfd.get())) {
    std::vector<pollfd> polls = {
        {.fd = listener, .events = POLLIN, .revents = 0},
        {.fd = launched_.pidfd.get(), .events = POLLIN, .revents = 0},
        {.fd = launched_.stdout_pipe.get(), .events = POLLIN, .revents = 0},
        {.fd = launched_.stderr_pipe.get(), .events = POLLIN, .revents = 0}};
    relay.add_watches(polls);
    if (passage) passage->add_watches(polls);
    bool rests_soon = relay.is_at_rest() && may_rest_ && !rests_;
    int patience = relay.awaits_rebirth() ? kRebirthMs : rests_soon ? kRestPauseMs : -1;
    int count = poll(polls.data(), polls.size(), patience);
    if (count < 0 && errno != EINTR) return Error::system("poll");
    if (count == 0 && relay.awaits_rebirth()) return Error::from_errno("be reborn", ETIMEDOUT);
    if (count == 0) {
      rest();
      continue;
    }
    if (rests_ && relay.forget_gone_peer()) continue;
    ATOLL_TRY_VOID(go_on(relay));
    if (polls[2].revents != 0) discard_output(launched_.stdout_pipe);
    if (polls[3].revents != 0) discard_output(launched_.stderr_pipe);
    if (polls[0].revents != 0) ATOLL_TRY_VOID(accept_newest(listener, relay));
    ATOLL_TRY_VOID(relay.move_bytes());
    if (relay.lies_down() && passage) {
      port_ = relay.take_port();
      launched_.control = passage->take_port();
      return {};
    }
    if (passage && !passage->move_bytes(polls)) passage.reset();
    while (waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    if (relay.is_ready() && !std::exchange(told, true)) ready();
  }
  return Error(Code::kUnavailable, "what was kept has ended");
}

}  // namespace atl::microvm
