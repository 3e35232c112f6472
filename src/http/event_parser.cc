#include "http/event_parser.h"

namespace atl::http {

Result<void> EventParser::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    // A line ends with CR, LF, or both; the LF of a pair may come with the next bytes.
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + event_.data.size() > kMaxEventBytes)
      return Error(Code::kExhausted, "an event of the server is too long");
    if (end == bytes.npos) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    take_line(line_, sink);
    line_.clear();
  }
  return {};
}

void EventParser::take_line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    if (event_.name.empty()) event_.name = "message";
    if (has_data_) sink(event_);
    event_.name.clear();
    event_.data.clear();
    has_data_ = false;
    return;
  }
  size_t colon = line.find(':');
  std::string_view field = line.substr(0, colon);
  std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field == "id") event_.id = value;
  if (field != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace atl::http
