#include "sandbox/channel.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace atl::sandbox {

namespace {

using agent::kChannelWindowBytes;

// Credit is given in steps, so that a steady stream costs few frames.
constexpr uint64_t kCreditStepBytes = kChannelWindowBytes / 4;

Error lost_link() {
  return Error(Code::kUnavailable, "the agent's stream broke").with_reason("agent_unavailable");
}

Error abandoned() { return Error(Code::kCancelled, "the channel was given up"); }

Error breach(std::string_view what) {
  return Error(Code::kCorrupt, "the agent sent " + std::string(what));
}

}  // namespace

struct Channel::State {
  State(boost::asio::any_io_executor executor, uint32_t given)
      : number(given), changed(std::move(executor)) {}

  uint32_t number;
  std::string received;  // and not yet read
  uint64_t received_total = 0;
  uint64_t read_total = 0;
  uint64_t granted = kChannelWindowBytes;  // to the agent
  uint64_t sent_total = 0;
  uint64_t credit = kChannelWindowBytes;  // from the agent
  bool held = true;                       // by a Channel
  bool abandoned = false;                 // by its user, who still holds it
  bool ended = false;                     // the agent sends no more data
  bool closed = false;                    // by the agent, or with the stream
  std::optional<Error> failure;
  Event changed;
};

struct Channel::Table {
  Table(boost::asio::any_io_executor given, const Clock& given_clock)
      : executor(std::move(given)), clock(given_clock) {}

  boost::asio::any_io_executor executor;
  const Clock& clock;
  std::shared_ptr<isolate::AgentLink> link;  // null while none is up
  std::map<uint32_t, std::shared_ptr<State>> open;
  uint32_t next = 1;
  SteadyTime last_end = SteadyTime::min();
};

Channel::Channel(std::shared_ptr<Table> table, std::shared_ptr<State> state)
    : table_(std::move(table)), state_(std::move(state)) {}

Channel::~Channel() {
  state_->held = false;
  state_->received = std::string();
  table_->last_end = table_->clock.steady_now();
  // The number stays taken until the agent has closed it too.
  if (!state_->closed && table_->link)
    table_->link->send(agent::encode(state_->number, agent::ChannelClose{}));
}

Task<Result<std::string>> Channel::read(SteadyTime deadline) {
  std::shared_ptr<State> state = state_;
  while (state->received.empty() && !state->ended && !state->closed && !state->abandoned) {
    bool notified = co_await state->changed.wait_until(deadline);
    if (!notified) co_return Error(Code::kTimeout, "the agent sends nothing");
  }
  if (state->abandoned) co_return abandoned();
  if (state->received.empty()) {
    if (state->failure) co_return *state->failure;
    co_return std::string();
  }
  std::string bytes = std::exchange(state->received, std::string());
  state->read_total += bytes.size();
  uint64_t grant = state->read_total + kChannelWindowBytes;
  if (!state->closed && !state->ended && grant - state->granted >= kCreditStepBytes &&
      table_->link) {
    state->granted = grant;
    table_->link->send(agent::encode_channel_credit(state->number, grant));
  }
  co_return bytes;
}

Task<Result<void>> Channel::wait_sendable(SteadyTime deadline) {
  std::shared_ptr<State> state = state_;
  while (!state->closed && !state->abandoned && state->sent_total >= state->credit) {
    bool notified = co_await state->changed.wait_until(deadline);
    if (!notified) co_return Error(Code::kTimeout, "the agent takes nothing");
  }
  std::shared_ptr<isolate::AgentLink> link = table_->link;
  bool room = link != nullptr;
  if (link) room = co_await link->wait_room(deadline);
  if (state->abandoned) co_return abandoned();
  if (state->failure) co_return *state->failure;
  if (state->closed) co_return Error(Code::kCancelled, "the agent has closed the channel");
  if (!room) co_return Error(Code::kTimeout, "the agent's stream takes nothing");
  co_return Result<void>();
}

Task<Result<void>> Channel::write(std::string_view bytes, SteadyTime deadline) {
  std::shared_ptr<State> state = state_;
  while (!bytes.empty()) {
    ATOLL_CO_TRY_VOID(co_await wait_sendable(deadline));
    uint64_t most = std::min<uint64_t>(state->credit - state->sent_total, bytes.size());
    std::string_view piece = bytes.substr(0, std::min(most, agent::kMaxChannelDataBytes));
    table_->link->send(agent::encode_channel_data(state->number, piece));
    state->sent_total += piece.size();
    bytes.remove_prefix(piece.size());
  }
  co_return Result<void>();
}

void Channel::end_writing() {
  if (!state_->closed && table_->link)
    table_->link->send(agent::encode_channel_end(state_->number));
}

void Channel::abandon() {
  state_->abandoned = true;
  state_->changed.notify_all();
}

Channels::Channels(boost::asio::any_io_executor executor, const Clock& clock)
    : table_(std::make_shared<Channel::Table>(std::move(executor), clock)) {}

Channels::~Channels() { link_lost(); }

Result<uint32_t> Channels::free_number() {
  if (!table_->link)
    return Error(Code::kUnavailable, "the agent's stream is being taken up again")
        .with_reason("agent_unavailable");
  if (table_->open.size() >= agent::kMaxChannels)
    return Error(Code::kExhausted,
                 "the sandbox has " + std::to_string(agent::kMaxChannels) + " operations open")
        .with_reason("too_many_operations");
  while (table_->next == 0 || table_->open.contains(table_->next)) ++table_->next;
  return table_->next++;
}

std::unique_ptr<Channel> Channels::enter(uint32_t number, std::string open_frame) {
  auto state = std::make_shared<Channel::State>(table_->executor, number);
  table_->open.emplace(number, state);
  table_->link->send(std::move(open_frame));
  return std::make_unique<Channel>(table_, std::move(state));
}

Result<std::unique_ptr<Channel>> Channels::open(const agent::FileRequest& request) {
  ATOLL_TRY(uint32_t number, free_number());
  ++file_operations_;
  return enter(number, agent::encode(number, request));
}

Result<std::unique_ptr<Channel>> Channels::open_port(uint16_t port) {
  ATOLL_TRY(uint32_t number, free_number());
  return enter(number, agent::encode_open_port(number, port));
}

Result<std::unique_ptr<Channel>> Channels::open_control(const agent::OpenControl& open) {
  ATOLL_TRY(uint32_t number, free_number());
  return enter(number, agent::encode(number, open));
}

boost::asio::any_io_executor Channels::executor() const { return table_->executor; }

void Channels::link_up(std::shared_ptr<isolate::AgentLink> link) {
  ATOLL_CHECK(!table_->link && table_->open.empty());
  table_->link = std::move(link);
}

void Channels::link_lost() {
  table_->link.reset();
  auto lost = std::exchange(table_->open, {});
  for (auto& [number, state] : lost) {
    state->closed = true;
    state->failure = lost_link();
    state->changed.notify_all();
  }
}

Result<void> Channels::handle(const agent::Frame& frame) {
  auto found = table_->open.find(frame.number);
  if (found == table_->open.end()) return breach("a frame for a channel that is not open");
  Channel::State& state = *found->second;
  if (frame.type == agent::FrameType::kChannelData) {
    ATOLL_TRY(std::string_view data, agent::decode_channel_data(frame.payload));
    if (state.ended) return breach("data after the end of a channel");
    if (data.size() > state.granted - state.received_total) return breach("more than its credit");
    state.received_total += data.size();
    if (state.held) state.received += data;
  } else if (frame.type == agent::FrameType::kChannelEnd) {
    if (state.ended) return breach("a second end of a channel");
    state.ended = true;
  } else if (frame.type == agent::FrameType::kChannelCredit) {
    ATOLL_TRY(uint64_t total, agent::decode_channel_credit(frame.payload));
    if (total < state.credit) return breach("less credit than before");
    state.credit = total;
  } else {
    ATOLL_TRY(agent::ChannelClose close, agent::decode_channel_close(frame.payload));
    state.closed = true;
    if (close.system_errno != 0)
      state.failure = Error::from_errno(close.operation, close.system_errno);
  }
  state.changed.notify_all();
  if (state.closed) table_->open.erase(found);
  return {};
}

size_t Channels::size() const {
  return static_cast<size_t>(std::count_if(table_->open.begin(), table_->open.end(),
                                           [](const auto& entry) { return entry.second->held; }));
}

SteadyTime Channels::last_end() const { return table_->last_end; }

}  // namespace atl::sandbox
