// A multipart body of a stranger: however it is cut into pieces, it must be taken apart in the same
// way. The first byte of the input says how long each piece is.
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/e2b/multipart.h"

namespace {

using atl::api::e2b::Multipart;

// Heads, bytes and ends in one text; "!" at the end if it was refused.
std::string taken_apart(std::string_view body, size_t piece_bytes) {
  Multipart multipart("b");
  std::string seen;
  while (!body.empty()) {
    auto pieces = multipart.take(body.substr(0, piece_bytes));
    body.remove_prefix(std::min(piece_bytes, body.size()));
    if (!pieces) return seen + "!";
    for (const Multipart::Piece& piece : *pieces) {
      if (piece.kind == Multipart::Piece::Kind::kHead)
        seen += "<" + piece.name + "|" + piece.filename + ">";
      if (piece.kind == Multipart::Piece::Kind::kBytes) seen += piece.bytes;
      if (piece.kind == Multipart::Piece::Kind::kEnd) seen += "<end>";
    }
  }
  return seen + (multipart.finished() ? "." : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  static_cast<void>(atl::api::e2b::boundary_of(body));
  std::string whole = taken_apart(body, size);
  std::string cut = taken_apart(body, size_t{data[0]} + 1);
  // What is refused is refused in any case, but not after the same number of bytes.
  bool refused = whole.ends_with('!') || cut.ends_with('!');
  if (!refused && whole != cut) abort();
  return 0;
}
