// What a context's interpreter and atolld say to each other: lines of fields between tabs, in which
// a backslash, a tab and line ends are written as \\, \t, \n and \r.
//
// The interpreter says, each with the number of the run:
//   ready   <name and version> begun     the second word: it says when a run begins
//   begun   <run>                        from here on a SIGINT interrupts this run; said again
//                                        where an earlier one may have been lost
//   result  <run> <main: 0 or 1> {<MIME type> <data>}…   binary data in base 64
//   error   <run> <name> <value> <traceback>
//   end     <run> ok | exception | interrupted
// and is told
//   start   {<variable>}…                its whole environment
//   run     <run> <code> {<variable>}…   with these variables for as long as the run takes
//   complete 0 <code>                    what could follow; the answer is a result of run 0
//
// User code shares the interpreter's memory and can say anything: a line that is not one of these,
// is too long or has the number of another run counts for nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atl::sandbox {

inline constexpr size_t kMaxSpeechLineBytes = 16 * 1024 * 1024;
inline constexpr size_t kMaxSpeechFields = 66;

// A line with its end.
std::string speech_line(const std::vector<std::string_view>& fields);
// Takes a line apart, without its end. Nothing if it has too many fields or is not well escaped.
std::optional<std::vector<std::string>> speech_fields(std::string_view line);

struct RunResult {
  bool is_main = false;                                        // the value of the last expression
  std::vector<std::pair<std::string, std::string>> data = {};  // by MIME type
};

struct RunError {
  std::string name = {};
  std::string value = {};
  std::string traceback = {};
};

enum class RunEnd : unsigned char { kOk, kException, kInterrupted };

struct InterpreterReady {
  std::string name = {};
  bool says_begun = false;
};

std::optional<InterpreterReady> parse_ready(const std::vector<std::string>& fields);
bool parse_begun(const std::vector<std::string>& fields, uint32_t run);
// All text in them is UTF-8. Nothing if the line is not such a word about this run.
std::optional<RunResult> parse_result(const std::vector<std::string>& fields, uint32_t run);
std::optional<RunError> parse_error(const std::vector<std::string>& fields, uint32_t run);
std::optional<RunEnd> parse_end(const std::vector<std::string>& fields, uint32_t run);

// Cuts what is said into lines, of which it keeps at most `most` bytes.
class SpeechLines {
 public:
  explicit SpeechLines(uint64_t offset, size_t most) : next_(offset), start_(offset), most_(most) {}

  struct Line {
    uint64_t start, end;  // offsets; end is behind the line end
    std::string text;     // without it, perhaps cut
    bool is_whole;
  };
  // Where the bytes to give next begin.
  uint64_t next() const { return next_; }
  // Takes bytes from `bytes` until a line is complete.
  std::optional<Line> take(std::string_view& bytes);

 private:
  uint64_t next_, start_;
  size_t most_;
  std::string text_ = {};
  bool is_whole_ = true;
};

}  // namespace atl::sandbox
