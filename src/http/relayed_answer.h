// RelayedAnswer: the answer of another server, as it comes. What that server says is hostile: a
// header has a limit, and nothing of it is passed on that the parser does not understand. Private
// to this folder and its tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"
#include "http/parser.h"
#include "http/relay.h"

namespace atl::http {

class RelayedAnswer {
 public:
  RelayedAnswer(Upstream& upstream, Method method);

  // Of the answer itself: 100 Continue and its like, which come before, are left out.
  Task<Result<void>> read_header();
  int status() const { return parser_->status(); }
  const Headers& headers() const { return headers_; }
  // What came behind the header of an upgrade.
  std::string take_rest() { return std::move(input_); }

  // The next part of the body; empty at its end.
  Task<Result<std::string_view>> read_body();

 private:
  Task<Result<bool>> receive();

  Upstream& upstream_;
  Method method_;
  std::optional<ResponseParser> parser_;
  Headers headers_;
  std::string input_;
  std::string piece_;
};

}  // namespace atl::http
