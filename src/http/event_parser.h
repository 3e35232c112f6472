// EventParser: server-sent events out of the bytes of an event stream, however the network cut
// them. The other side of format_event().
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::http {

struct ReceivedEvent {
  std::string id;    // the last one that was sent
  std::string name;  // "message" when the stream gives none
  std::string data;
};

inline constexpr size_t kMaxEventBytes = 16 * 1024 * 1024;

class EventParser {
 public:
  using Sink = std::function<void(const ReceivedEvent&)>;

  // Calls `sink` for each event that `bytes` complete; kExhausted when one is too long.
  Result<void> feed(std::string_view bytes, const Sink& sink);

 private:
  void take_line(std::string_view line, const Sink& sink);

  std::string line_;
  bool after_return_ = false;
  ReceivedEvent event_;
  bool has_data_ = false;
};

}  // namespace atl::http
