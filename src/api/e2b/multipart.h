// Multipart: takes a multipart/form-data body apart while it comes. Bytes go in piece by piece;
// what comes out is the head of a part, its bytes, and its end, in the order of the body.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::api::e2b {

// The boundary that the type names; nothing if it is not multipart/form-data with one.
std::optional<std::string> boundary_of(std::string_view content_type);

class Multipart {
 public:
  struct Piece {
    enum class Kind : unsigned char { kHead, kBytes, kEnd } kind;
    std::string name = {};      // kHead: of the field
    std::string filename = {};  // kHead: as it was sent, with its directories
    std::string bytes = {};     // kBytes
  };

  explicit Multipart(std::string boundary) : delimiter_("\r\n--" + std::move(boundary)) {}

  // kInvalid: it is not such a body, or the head of a part is too long.
  Result<std::vector<Piece>> take(std::string_view bytes);
  // Whether the last boundary has come.
  bool finished() const { return state_ == State::kOver; }

 private:
  enum class State : unsigned char { kPreamble, kAfterDelimiter, kHead, kBody, kOver };

  Result<bool> step(std::vector<Piece>& pieces);
  bool skip_preamble();
  Result<bool> after_delimiter();
  Result<bool> read_head(std::vector<Piece>& pieces);
  bool read_body(std::vector<Piece>& pieces);

  std::string delimiter_;
  // As if a line end stood before the first boundary.
  std::string buffer_ = "\r\n";
  State state_ = State::kPreamble;
};

}  // namespace atl::api::e2b
