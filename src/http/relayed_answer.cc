#include "http/relayed_answer.h"

#include <boost/asio/this_coro.hpp>

#include "http/head.h"

namespace atl::http {
namespace {

constexpr size_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kStepBytes = 32 * 1024;

}  // namespace

RelayedAnswer::RelayedAnswer(Upstream& upstream, Method method)
    : upstream_(upstream), method_(method), piece_(kStepBytes, '\0') {}

Task<Result<void>> RelayedAnswer::read_header() {
  do {
    parser_.emplace();
    HeaderScanner scanner;
    size_t length = 0;
    while (length == 0) {
      auto scanned = scanner.scan(input_);
      if (!scanned) co_return Error(Code::kCorrupt, scanned.error().message());
      length = *scanned;
      if (length > 0) break;
      if (input_.size() > kMaxHeaderBytes) co_return Error(Code::kCorrupt, "endless header");
      ATOLL_CO_TRY(bool more, co_await receive());
      if (!more) co_return Error(Code::kCorrupt, "the connection ended before an answer");
    }
    auto parsed = parser_->parse_header(std::string_view(input_).substr(0, length), method_);
    if (!parsed) co_return std::move(parsed).error();
    input_.erase(0, length);
  } while (parser_->status() / 100 == 1 && parser_->status() != 101);
  headers_ = parser_->take_headers();
  co_return Result<void>();
}

Task<Result<std::string_view>> RelayedAnswer::read_body() {
  while (!parser_->body_done()) {
    auto decoded = parser_->decode(input_, std::span<char>(piece_));
    if (!decoded) co_return std::move(decoded).error();
    input_.erase(0, decoded->consumed);
    if (decoded->produced > 0) co_return std::string_view(piece_).substr(0, decoded->produced);
    if (parser_->body_done()) break;
    if (input_.size() > kMaxHeaderBytes) co_return Error(Code::kCorrupt, "bad chunk");
    ATOLL_CO_TRY(bool more, co_await receive());
    if (more) continue;
    auto finished = parser_->finish();
    if (!finished) co_return std::move(finished).error();
    break;
  }
  co_return std::string_view();
}

Task<Result<bool>> RelayedAnswer::receive() {
  // A cancellation that came while nothing was pending must not be forgotten.
  auto state = co_await boost::asio::this_coro::cancellation_state;
  if (state.cancelled() != boost::asio::cancellation_type::none)
    co_return Error(Code::kCancelled, "the client has gone");
  ATOLL_CO_TRY(std::string bytes, co_await upstream_.read());
  input_ += bytes;
  co_return !bytes.empty();
}

}  // namespace atl::http
