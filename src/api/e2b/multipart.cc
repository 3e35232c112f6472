#include "api/e2b/multipart.h"

#include <algorithm>

#include "http/message.h"

namespace atl::api::e2b {

namespace {

constexpr size_t kMaxHeadBytes = 16 * 1024;
constexpr size_t kMaxBoundaryBytes = 70;
constexpr size_t kMaxPreambleBytes = 1024;
constexpr std::string_view kType = "multipart/form-data";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

Error malformed(std::string_view what) {
  return Error(Code::kInvalid, "the multipart body " + std::string(what))
      .with_reason("malformed_request");
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// The value of `name` in "…; name=value; other="…"", with the escapes that browsers use.
std::optional<std::string> parameter(std::string_view text, std::string_view name) {
  size_t at = text.find(';');
  while (at != text.npos) {
    text = trimmed(text.substr(at + 1));
    size_t equals = text.find('=');
    if (equals == text.npos) return std::nullopt;
    std::string_view key = trimmed(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    bool quoted = text.starts_with('"');
    size_t end = quoted ? text.find('"', 1) : std::min(text.find(';'), text.size());
    if (end == text.npos) return std::nullopt;
    std::string_view value = quoted ? text.substr(1, end - 1) : trimmed(text.substr(0, end));
    if (http::equal_ignoring_case(key, name)) return std::string(value);
    text.remove_prefix(std::min(text.size(), end + (quoted ? 1 : 0)));
    at = text.find(';');
  }
  return std::nullopt;
}

// %22 stands for a quote, %0D and %0A for line ends; nothing else is escaped.
std::string unescaped(std::string text) {
  constexpr std::pair<std::string_view, char> kEscapes[] = {
      {"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}};
  for (const auto& [escape, letter] : kEscapes)
    for (size_t at = text.find(escape); at != text.npos; at = text.find(escape, at + 1))
      text.replace(at, escape.size(), 1, letter);
  return text;
}

}  // namespace

std::optional<std::string> boundary_of(std::string_view content_type) {
  std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
  if (!http::equal_ignoring_case(type, kType)) return std::nullopt;
  auto boundary = parameter(content_type, "boundary");
  bool sound = boundary && !boundary->empty() && boundary->size() <= kMaxBoundaryBytes;
  return sound ? boundary : std::nullopt;
}

Result<std::vector<Multipart::Piece>> Multipart::take(std::string_view bytes) {
  std::vector<Piece> pieces;
  buffer_.append(bytes);
  bool goes_on = true;
  while (goes_on) {
    ATOLL_TRY(goes_on, step(pieces));
  }
  return pieces;
}

Result<bool> Multipart::step(std::vector<Piece>& pieces) {
  switch (state_) {
    case State::kPreamble:
      if (skip_preamble()) return true;
      if (buffer_.size() > kMaxPreambleBytes) return malformed("does not begin with its boundary");
      return false;
    case State::kAfterDelimiter:
      return after_delimiter();
    case State::kHead:
      return read_head(pieces);
    case State::kBody:
      return read_body(pieces);
    case State::kOver:
      buffer_.clear();  // what follows means nothing
      return false;
  }
  return false;
}

bool Multipart::skip_preamble() {
  size_t at = buffer_.find(delimiter_);
  if (at == buffer_.npos) return false;
  buffer_.erase(0, at + delimiter_.size());
  state_ = State::kAfterDelimiter;
  return true;
}

Result<bool> Multipart::after_delimiter() {
  if (buffer_.size() < kLineEnd.size()) return false;
  bool last = buffer_.starts_with("--");
  if (!last && !buffer_.starts_with(kLineEnd)) return malformed("has a boundary that goes on");
  buffer_.erase(0, last ? 2 : 0);
  state_ = last ? State::kOver : State::kHead;
  return true;
}

// The head begins with the line end behind the boundary, so that one without fields is whole too.
Result<bool> Multipart::read_head(std::vector<Piece>& pieces) {
  size_t end = buffer_.find(kHeadEnd);
  if (end == buffer_.npos && buffer_.size() > kMaxHeadBytes)
    return malformed("has too long a head");
  if (end == buffer_.npos) return false;
  std::string_view head = std::string_view(buffer_).substr(0, end);
  Piece piece{Piece::Kind::kHead};
  while (!head.empty()) {
    head.remove_prefix(kLineEnd.size());
    std::string_view line = head.substr(0, head.find(kLineEnd));
    head.remove_prefix(line.size());
    size_t colon = line.find(':');
    bool names = colon != line.npos &&
                 http::equal_ignoring_case(trimmed(line.substr(0, colon)), "Content-Disposition");
    if (!names) continue;
    piece.name = unescaped(parameter(line, "name").value_or(""));
    piece.filename = unescaped(parameter(line, "filename").value_or(""));
  }
  buffer_.erase(0, end + kHeadEnd.size());
  pieces.push_back(std::move(piece));
  state_ = State::kBody;
  return true;
}

bool Multipart::read_body(std::vector<Piece>& pieces) {
  size_t at = buffer_.find(delimiter_);
  bool is_whole = at != buffer_.npos;
  // The end of the buffer may be the beginning of a boundary.
  size_t safe = is_whole ? at : buffer_.size() - std::min(buffer_.size(), delimiter_.size());
  if (safe > 0) pieces.push_back({Piece::Kind::kBytes, "", "", buffer_.substr(0, safe)});
  buffer_.erase(0, safe + (is_whole ? delimiter_.size() : 0));
  if (!is_whole) return false;
  pieces.push_back({Piece::Kind::kEnd});
  state_ = State::kAfterDelimiter;
  return true;
}

}  // namespace atl::api::e2b
