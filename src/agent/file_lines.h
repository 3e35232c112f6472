// Search for a text in the lines of a file that comes piece by piece; lines may be of any length.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace atl::agent {

class LineSearch {
 public:
  struct Line {
    uint64_t number;        // from 1
    std::string_view text;  // its beginning
  };
  using Found = std::function<bool(const Line&)>;  // false: enough

  // `text` is not empty and has no newline. `found` is called once for each line that holds it.
  LineSearch(std::string_view text, Found found);

  // False: stop, it is a binary file or enough was found.
  bool add(std::string_view bytes);
  // The end of the last line.
  bool finish();

 private:
  void add_to_line(std::string_view part);
  bool end_line();

  std::string_view text_;
  Found found_;
  uint64_t number_ = 1;
  std::string beginning_;
  std::string tail_;  // where a match may have begun
  bool matched_ = false;
};

}  // namespace atl::agent
