#include "http/places.h"

#include <algorithm>

#include "http/peer_network.h"

namespace atl::http {

namespace {

constexpr size_t kMaxKnownAddresses = 4096;  // and as many again
// What is kept is never most of a server that is small.
constexpr size_t kKeptPart = 8;

}  // namespace

Places::Places(const Limits& limits)
    : limits_(limits), kept_(std::min(limits.connections_kept, limits.connections / kKeptPart)) {}

std::unique_ptr<Places::Place> Places::take(std::string address, std::function<void()> leave) {
  auto place = std::make_unique<Place>(*this, std::move(address), std::move(leave));
  if (!make_room(*place)) return nullptr;
  ++taken_;
  place->holder_ = Place::Holder::kStranger;
  enter(*place);
  return place;
}

bool Places::make_room(const Place& newcomer) {
  auto address = by_address_.find(newcomer.address_);
  auto network = by_network_.find(newcomer.network_);
  bool known = newcomer.stranger_.has_known_address;
  size_t most = limits_.connections - (known ? 0 : kept_);
  const Strangers* crowd = nullptr;
  if (address != by_address_.end() && address->second.size() >= limits_.connections_by_address)
    crowd = &address->second;
  else if (network != by_network_.end() && network->second.size() >= limits_.connections_by_network)
    crowd = &network->second;
  else if (taken_ >= most)
    crowd = &strangers_;
  else
    return true;
  if (crowd->empty()) return false;
  Stranger first = *crowd->begin();
  if (first.has_known_address && !known) return false;
  drop(first);
  return true;
}

void Places::drop(size_t count) {
  for (; count > 0 && !strangers_.empty(); --count) {
    Stranger first = *strangers_.begin();
    drop(first);
  }
}

void Places::drop(const Stranger& stranger) {
  Place& place = *stranger.place;
  leave(place);
  place.holder_ = Place::Holder::kNobody;
  --taken_;
  ++dropped_;
  place.leave_();
}

void Places::enter(Place& place) {
  place.stranger_.number = next_number_++;
  strangers_.insert(place.stranger_);
  by_address_[place.address_].insert(place.stranger_);
  by_network_[place.network_].insert(place.stranger_);
}

void Places::leave(const Place& place) {
  strangers_.erase(place.stranger_);
  auto leave_crowd = [&place](std::map<std::string, Strangers>& crowds, const std::string& name) {
    auto crowd = crowds.find(name);
    crowd->second.erase(place.stranger_);
    if (crowd->second.empty()) crowds.erase(crowd);
  };
  leave_crowd(by_address_, place.address_);
  leave_crowd(by_network_, place.network_);
}

bool Places::is_known(const std::string& address) const {
  return known_.contains(address) || known_before_.contains(address);
}

void Places::note_known(const std::string& address) {
  if (known_.size() >= kMaxKnownAddresses && !known_.contains(address)) {
    known_before_ = std::move(known_);
    known_.clear();
  }
  known_.insert(address);
}

Places::Place::Place(Places& places, std::string address, std::function<void()> leave)
    : places_(places),
      address_(std::move(address)),
      network_(wider_network(address_)),
      leave_(std::move(leave)),
      stranger_{places.is_known(address_), Stage::kWaiting, 0, this} {}

Places::Place::~Place() {
  if (holder_ == Holder::kNobody) return;
  if (holder_ == Holder::kStranger) places_.leave(*this);
  --places_.taken_;
}

void Places::Place::set_stage(Stage stage) {
  if (holder_ != Holder::kStranger || stranger_.stage == stage) return;
  places_.leave(*this);
  stranger_.stage = stage;
  places_.enter(*this);
}

void Places::Place::set_known() {
  if (holder_ != Holder::kStranger) return;
  places_.leave(*this);
  holder_ = Holder::kKnown;
  places_.note_known(address_);
}

}  // namespace atl::http
