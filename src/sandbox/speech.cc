#include "sandbox/speech.h"

#include <algorithm>

#include "base/utf8.h"

namespace atl::sandbox {

namespace {

constexpr size_t kMaxTypeBytes = 128;

constexpr std::pair<char, char> kEscapes[] = {{'\\', '\\'}, {'\t', 't'}, {'\n', 'n'}, {'\r', 'r'}};

void append_escaped(std::string& line, std::string_view field) {
  for (char c : field) {
    auto found = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                              [c](const auto& escape) { return escape.first == c; });
    if (found == std::end(kEscapes)) {
      line += c;
    } else {
      (line += '\\') += found->second;
    }
  }
}

std::optional<std::string> unescaped(std::string_view field) {
  std::string text;
  text.reserve(field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      text += field[i];
      continue;
    }
    if (++i == field.size()) return std::nullopt;
    auto found = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                              [&](const auto& escape) { return escape.second == field[i]; });
    if (found == std::end(kEscapes)) return std::nullopt;
    text += found->first;
  }
  return text;
}

bool is_about(const std::vector<std::string>& fields, std::string_view kind, uint32_t run) {
  return fields.size() >= 2 && fields[0] == kind && fields[1] == std::to_string(run);
}

bool is_media_type(std::string_view text) {
  auto is_token = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != ','; };
  return !text.empty() && text.size() <= kMaxTypeBytes && text.find('/') != text.npos &&
         std::all_of(text.begin(), text.end(), is_token);
}

}  // namespace

std::string speech_line(const std::vector<std::string_view>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += '\t';
    append_escaped(line, fields[i]);
  }
  line += '\n';
  return line;
}

std::optional<std::vector<std::string>> speech_fields(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    size_t end = std::min(line.find('\t'), line.size());
    auto field = unescaped(line.substr(0, end));
    if (!field || fields.size() == kMaxSpeechFields) return std::nullopt;
    fields.push_back(std::move(*field));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

std::optional<InterpreterReady> parse_ready(const std::vector<std::string>& fields) {
  if (fields.size() < 2 || fields.front() != "ready") return std::nullopt;
  bool says_begun = fields.size() == 3 && fields[2] == "begun";
  if (fields.size() != 2 && !says_begun) return std::nullopt;
  return InterpreterReady{fields[1], says_begun};
}

bool parse_begun(const std::vector<std::string>& fields, uint32_t run) {
  return fields.size() == 2 && is_about(fields, "begun", run);
}

std::optional<RunResult> parse_result(const std::vector<std::string>& fields, uint32_t run) {
  if (!is_about(fields, "result", run) || fields.size() < 5 || fields.size() % 2 == 0)
    return std::nullopt;
  if (fields[2] != "0" && fields[2] != "1") return std::nullopt;
  RunResult result{.is_main = fields[2] == "1"};
  for (size_t i = 3; i < fields.size(); i += 2) {
    if (!is_media_type(fields[i]) || !is_utf8(fields[i + 1])) return std::nullopt;
    result.data.emplace_back(fields[i], fields[i + 1]);
  }
  return result;
}

std::optional<RunError> parse_error(const std::vector<std::string>& fields, uint32_t run) {
  if (!is_about(fields, "error", run) || fields.size() != 5) return std::nullopt;
  for (const std::string& field : fields)
    if (!is_utf8(field)) return std::nullopt;
  return RunError{fields[2], fields[3], fields[4]};
}

std::optional<RunEnd> parse_end(const std::vector<std::string>& fields, uint32_t run) {
  if (!is_about(fields, "end", run) || fields.size() != 3) return std::nullopt;
  if (fields[2] == "ok") return RunEnd::kOk;
  if (fields[2] == "exception") return RunEnd::kException;
  if (fields[2] == "interrupted") return RunEnd::kInterrupted;
  return std::nullopt;
}

std::optional<SpeechLines::Line> SpeechLines::take(std::string_view& bytes) {
  size_t end = bytes.find('\n');
  std::string_view piece = bytes.substr(0, end);
  size_t kept = std::min(piece.size(), most_ - text_.size());
  text_.append(piece.substr(0, kept));
  is_whole_ = is_whole_ && kept == piece.size();
  if (end == bytes.npos) {
    next_ += bytes.size();
    bytes = {};
    return std::nullopt;
  }
  next_ += end + 1;
  bytes.remove_prefix(end + 1);
  Line line{start_, next_, std::exchange(text_, {}), std::exchange(is_whole_, true)};
  start_ = next_;
  return line;
}

}  // namespace atl::sandbox
