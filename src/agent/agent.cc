#include "agent/agent.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/spoken_version.h"
#include "base/crash_point.h"
#include "base/file.h"

namespace atl::agent {
namespace {

// In one turn of the loop, so that a program that makes orphans without end cannot hold it.
constexpr int kMaxReaped = 256;

Result<Fd> watch_children() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return Error::system("block SIGCHLD");
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error::system("signalfd");
  return fd;
}

AgentPlace place_of(const GuestLimits& guest) {
  if (guest.memory_bytes == 0) return AgentPlace::kJail;
  return is_sentry(guest.kind) ? AgentPlace::kSentry : AgentPlace::kMachine;
}

}  // namespace

struct Agent::Parts {
  std::unique_ptr<Launcher> launcher;
  ExecTable execs;
  ChannelTable channels;
  Fd children;
};

Agent::Agent(Birth birth, Parts parts)
    : place_(place_of(birth.guest)),
      listener_(std::move(birth.listener)),
      children_(std::move(parts.children)),
      nonce_(birth.nonce),
      launcher_(std::move(parts.launcher)),
      execs_(std::move(parts.execs)),
      channels_(std::move(parts.channels)),
      sudo_(std::move(birth.sudo)),
      rest_(std::move(birth.rest)) {}

Result<Agent> Agent::create(Birth birth) {
  // Programs close their input when they like.
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Error::system("ignore SIGPIPE");
  OfLeaves of_leaves = birth.spawner ? OfLeaves::kNotCounted : OfLeaves::kCounted;
  ATOLL_TRY(Launcher made, Launcher::create(std::move(birth.spawner)));
  auto launcher = std::make_unique<Launcher>(std::move(made));
  AgentPlace place = place_of(birth.guest);
  std::optional<LimitWatch> limits;
  if (place == AgentPlace::kSentry) {
    launcher->limit_leaves(birth.guest.pids);
    // The count of refused forks is the watch's own.
    limits.emplace(birth.guest, Fd(fcntl(birth.pids_events.get(), F_DUPFD_CLOEXEC, 0)));
  }
  ATOLL_TRY(Counters counters,
            Counters::create(std::move(birth.memory_events), std::move(birth.pids_events),
                             std::move(birth.memory_peak), of_leaves));
  ATOLL_TRY(Fd root, open_file("/", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd children, watch_children());
  auto events = open_at(birth.cgroup.get(), "cgroup.events", O_RDONLY);
  if (!events && place != AgentPlace::kSentry) return std::move(events).error();
  Fd cgroup(fcntl(birth.cgroup.get(), F_DUPFD_CLOEXEC, 0));
  if (!cgroup) return Error::system("dup cgroup");
  ChannelTable channels(std::move(cgroup), *launcher);
  if (place != AgentPlace::kJail) channels.offer_still_files(birth.rest.get());
  ExecTable execs({.cgroup = std::move(birth.cgroup),
                   .launcher = *launcher,
                   .counters = std::move(counters),
                   .oom = OomWatch(std::move(birth.oom_notice), birth.on_oom),
                   .layer = LayerProbe(std::move(root)),
                   .freeze = FreezeWatch(events ? std::move(*events) : Fd()),
                   .place = place,
                   .limits = std::move(limits)});
  // A sandbox that cannot be looked at is not born.
  if (birth.probe) ATOLL_TRY_VOID(execs.probe(std::move(birth.probe)));
  return Agent(std::move(birth), {.launcher = std::move(launcher),
                                  .execs = std::move(execs),
                                  .channels = std::move(channels),
                                  .children = std::move(children)});
}

Error Agent::run() {
  while (true) {
    polls_.clear();
    add_watches();
    auto deadline = execs_.next_deadline();
    for (auto other : {sudo_.next_deadline(), channels_.next_deadline()})
      if (other && (!deadline || *other < *deadline)) deadline = other;
    if (more_to_reap_) deadline = std::chrono::steady_clock::now();
    auto waited = polls_.wait(deadline);
    if (!waited) return std::move(waited).error();
    bool told = false;
    for (size_t i = 0; i < polls_.size(); ++i) {
      if (polls_.ready(i) == 0) continue;
      told = true;
      handle(polls_.watch(i), polls_.ready(i));
    }
    // gVisor does not tell of every orphan that ends as it is handed to process 1.
    bool untold = !told && place_ == AgentPlace::kSentry;
    if (more_to_reap_ || untold) children_ended();
    execs_.check_deadlines();
    sudo_.check_deadlines();
    channels_.check_deadlines();
    report();
    if (rest_) tell_rest();
    bool over = launcher_->lost() && execs_.is_empty(ExecTable::Left::kAnything);
    if (over) return Error(Code::kUnavailable, "the spawner is gone");
  }
}

void Agent::add_watches() {
  polls_.add(listener_.get(), POLLIN, {Source::kListener});
  polls_.add(children_.get(), POLLIN, {Source::kChildren});
  if (connection_) {
    short events = connection_->wants_write() ? POLLIN | POLLOUT : POLLIN;
    polls_.add(connection_->fd(), events, {Source::kConnection});
  }
  execs_.add_watches(polls_);
  channels_.add_watches(polls_);
  sudo_.add_watches(polls_);
  if (rest_) polls_.add(rest_.get(), POLLIN, {Source::kRebirth});
}

void Agent::handle(Watch watch, short ready) {
  if (channels_.handle(watch, ready)) return;
  switch (watch.source) {
    case Source::kListener:
      return accept_newest();
    case Source::kChildren:
      return children_ended();
    case Source::kConnection:
      // Writing is report()'s, at the end of each turn.
      if ((ready & ~POLLOUT) != 0) receive();
      return;
    case Source::kSudoListener:
    case Source::kSudoCall:
      return sudo_.handle(watch, execs_);
    case Source::kRebirth:
      return be_reborn();
    default:
      return execs_.handle(watch);
  }
}

void Agent::accept_newest() {
  while (true) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    drop_connection();
    connection_.emplace(std::move(socket));
    ++connections_;
    crash_point("hello");
    connection_->queue(encode(Hello{spoken_version(), nonce_, execs_.offsets(), ATOLL_VERSION}));
  }
}

void Agent::receive() {
  // The event may have been the old connection's, replaced earlier in this turn; then there is
  // nothing.
  if (!connection_) return;
  bool good = connection_->receive().ok();
  while (good) {
    auto frame = connection_->next();
    if (frame && !*frame) return;
    good = frame.ok() && obey(**frame);
  }
  drop_connection();
}

void Agent::drop_connection() {
  connection_.reset();
  channels_.drop_all();
}

bool Agent::obey(const Frame& frame) {
  if (connection_->welcomed() == (frame.type == FrameType::kWelcome)) return false;
  crash_point(frame_name(frame.type));
  switch (frame.type) {
    case FrameType::kWelcome:
      return welcome(frame.payload);
    case FrameType::kStart:
    case FrameType::kAcknowledge:
    case FrameType::kSignal:
    case FrameType::kInput:
    case FrameType::kInputEnd:
    case FrameType::kResize:
    case FrameType::kGrant:
      return execs_.obey(frame);
    case FrameType::kImprint:
      return frame.payload.empty() &&
             launcher_->lend_imprint(frame.number, connection_->take_descriptor());
    case FrameType::kExitAcknowledge:
      return frame.payload.empty() && acknowledge_exit(frame.number);
    case FrameType::kOpenFiles:
    case FrameType::kOpenPort:
    case FrameType::kOpenControl:
    case FrameType::kOpenImprint:
    case FrameType::kChannelData:
    case FrameType::kChannelEnd:
    case FrameType::kChannelCredit:
    case FrameType::kChannelClose:
      return channels_.obey(frame, execs_);
    default:
      return false;
  }
}

bool Agent::welcome(std::string_view payload) {
  auto welcome = decode_welcome(payload);
  if (!welcome || welcome->version != spoken_version()) return false;
  if (!execs_.resume(welcome->execs)) return false;
  connection_->set_welcomed();
  return true;
}

bool Agent::acknowledge_exit(uint32_t number) {
  Exec* exec = execs_.find(number);
  if (exec == nullptr) return true;
  if (!exec->end_was_told()) return false;
  execs_.forget(number);
  return true;
}

void Agent::report() {
  if (!connection_) return;
  bool sent = connection_->flush().ok();
  while (sent && connection_->welcomed() && connection_->has_room()) {
    auto frame = next_report();
    if (!frame) break;
    connection_->queue(*frame);
    sent = connection_->has_room() || connection_->flush().ok();
  }
  if (sent) sent = connection_->flush().ok();
  if (!sent) return drop_connection();
  connection_->rest();
}

std::optional<std::string> Agent::next_report() {
  channels_turn_ = !channels_turn_;
  auto frame = channels_turn_ ? channels_.next_report(execs_) : execs_.next_report();
  if (frame) return frame;
  return channels_turn_ ? execs_.next_report() : channels_.next_report(execs_);
}

// Whoever wants to know may stop all of this until there is something to read.
void Agent::tell_rest() {
  bool told_all = connection_ && connection_->welcomed() && !connection_->wants_write();
  bool idle = execs_.is_empty(ExecTable::Left::kWaiting) && channels_.is_empty() &&
              sudo_.is_empty() && !more_to_reap_;
  if (!told_all || !idle) return;
  RestNote note{connections_, connection_->received_bytes()};
  if (note == told_) return;
  told_ = note;
  (void)send(rest_.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Agent::be_reborn() {
  decltype(nonce_) nonce;
  ssize_t count = recv(rest_.get(), nonce.data(), nonce.size(), MSG_DONTWAIT);
  if (count == 0) return rest_.reset();
  if (count != static_cast<ssize_t>(nonce.size())) return;
  nonce_ = nonce;
  drop_connection();
  execs_.handle({Source::kRebirth});
  char done = 0;
  (void)send(rest_.get(), &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Agent::children_ended() {
  signalfd_siginfo info;
  // One signal may stand for many children, so the signal is only a reason to look.
  while (read(children_.get(), &info, sizeof info) > 0) {
  }
  for (int i = 0; i < kMaxReaped; ++i) {
    auto child = execs_.reap_one();
    more_to_reap_ = child.has_value();
    if (!more_to_reap_) return;
    sudo_.reaped(*child);
    channels_.reaped(*child);
  }
}

}  // namespace atl::agent
