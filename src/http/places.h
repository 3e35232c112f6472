// Places: who has the connections of a server when more want one than there are. A connection on
// which nobody has shown a key yet is a stranger's. Strangers have a share by address and by
// network; where it is used up, and when there is no room, that stranger goes who has waited
// longest without a finished header. Some places are kept for addresses that have shown a key, and
// who has shown one keeps the connection. Private to this folder.
//
// Belongs to the io_context thread. What it costs grows with the logarithm of the connections.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "http/server.h"

namespace atl::http {

class Places {
 public:
  class Place;

  explicit Places(const Limits& limits);
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Null: there is no room, and nobody who could go. `leave` is called when this one has to go,
  // which counts as gone from then on; it must not call back.
  std::unique_ptr<Place> take(std::string address, std::function<void()> leave);
  // Has up to so many strangers go, for the descriptors that they hold.
  void drop(size_t count);

  size_t taken() const { return taken_; }
  // How many had to go.
  uint64_t dropped() const { return dropped_; }

 private:
  enum class Stage : unsigned char { kWaiting, kBusy };
  // In the order in which they go: addresses without a key, then those without a finished header,
  // then the oldest.
  struct Stranger {
    bool has_known_address;
    Stage stage;
    uint64_t number;
    Place* place;
    auto operator<=>(const Stranger&) const = default;
  };
  using Strangers = std::set<Stranger>;

  bool is_known(const std::string& address) const;
  void note_known(const std::string& address);
  bool make_room(const Place& newcomer);
  void drop(const Stranger& stranger);
  void enter(Place& place);
  void leave(const Place& place);

  Limits limits_;
  size_t kept_;
  size_t taken_ = 0;
  uint64_t dropped_ = 0;
  uint64_t next_number_ = 0;
  Strangers strangers_;
  std::map<std::string, Strangers> by_address_, by_network_;
  // Addresses that have shown a key; the older ones are forgotten when there are as many again.
  std::set<std::string> known_, known_before_;
};

// One connection's, until it is destroyed.
class Places::Place {
 public:
  Place(Places& places, std::string address, std::function<void()> leave);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // The header of a request is there, or another one is waited for.
  void set_busy() { set_stage(Stage::kBusy); }
  void set_waiting() { set_stage(Stage::kWaiting); }
  // A request on it has shown a key.
  void set_known();

 private:
  friend class Places;
  enum class Holder : unsigned char { kStranger, kKnown, kNobody };
  void set_stage(Stage stage);

  Places& places_;
  std::string address_, network_;
  std::function<void()> leave_;
  Holder holder_ = Holder::kNobody;
  Stranger stranger_;
};

}  // namespace atl::http
