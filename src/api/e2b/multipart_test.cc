#include "api/e2b/multipart.h"

#include <gtest/gtest.h>

namespace atl::api::e2b {
namespace {

using Kind = Multipart::Piece::Kind;

// What comes out when the body comes in steps of that many bytes: "name|filename:bytes;…".
std::string parts_of(std::string_view body, size_t step) {
  Multipart multipart("b");
  std::string told;
  for (size_t at = 0; at < body.size(); at += step) {
    auto pieces = multipart.take(body.substr(at, step));
    if (!pieces) return "error: " + pieces.error().message();
    for (const Multipart::Piece& piece : *pieces) {
      if (piece.kind == Kind::kHead) told += piece.name + "|" + piece.filename + ":";
      if (piece.kind == Kind::kBytes) told += piece.bytes;
      if (piece.kind == Kind::kEnd) told += ";";
    }
  }
  return multipart.finished() ? told : told + "…";
}

constexpr std::string_view kTwo =
    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"dir/a.txt\"\r\n"
    "Content-Type: text/plain\r\n\r\none\r\n--\r\n--not\r\n--b\r\n"
    "content-disposition: form-data; name=file; filename=\"q%22.txt\"\r\n\r\n\r\n--b--\r\n";

TEST(Multipart, GivesTheSameHoweverItIsCut) {
  for (size_t step : {1, 2, 3, 7, 1000})
    EXPECT_EQ(parts_of(kTwo, step), "file|dir/a.txt:one\r\n--\r\n--not;file|q\".txt:;") << step;
}

TEST(Multipart, RefusesWhatIsNone) {
  EXPECT_TRUE(parts_of("--bx\r\n\r\n", 100).starts_with("error"));
  EXPECT_TRUE(parts_of(std::string(5000, 'x'), 1000).starts_with("error"));
  EXPECT_TRUE(parts_of("--b\r\n" + std::string(20000, 'x'), 1000).starts_with("error"));
  EXPECT_EQ(parts_of("--b\r\n\r\ncut", 100), "|:…");
}

TEST(Multipart, BoundaryIsThatOfTheType) {
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary_of("Multipart/Form-Data; charset=utf-8; boundary=\"a b\""), "a b");
  EXPECT_FALSE(boundary_of("multipart/form-data"));
  EXPECT_FALSE(boundary_of("application/json; boundary=abc"));
  EXPECT_FALSE(boundary_of("multipart/form-data; boundary=" + std::string(71, 'x')));
}

}  // namespace
}  // namespace atl::api::e2b
