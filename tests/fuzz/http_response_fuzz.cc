// Answers of a server inside a sandbox, as the relay reads them: whatever comes, in whatever
// pieces, no field breaks out of its line and no body is longer than what was sent.
#include <algorithm>
#include <string>
#include <string_view>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "base/check.h"
#include "http/relayed_answer.h"

namespace {

using namespace atl;
using namespace atl::http;

class GivenUpstream final : public Upstream {
 public:
  GivenUpstream(std::string_view bytes, size_t step) : bytes_(bytes), step_(step) {}

  Task<Result<std::string>> read() override {
    std::string piece(bytes_.substr(0, step_));
    bytes_.remove_prefix(piece.size());
    co_return piece;
  }
  Task<Result<void>> write(std::string_view) override { co_return Result<void>(); }
  void end_writing() override {}
  void close() override {}

 private:
  std::string_view bytes_;
  size_t step_;
};

void check_fields(const Headers& headers) {
  for (const auto& [name, value] : headers.fields())
    for (std::string_view text : {std::string_view(name), std::string_view(value)})
      ATOLL_CHECK(text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos);
}

Task<void> read_answer(Upstream& upstream, Method method, size_t most_bytes) {
  RelayedAnswer answer(upstream, method);
  auto read = co_await answer.read_header();
  if (!read) co_return;
  ATOLL_CHECK(answer.status() >= 100 && answer.status() <= 999);
  check_fields(answer.headers());
  if (answer.status() == 101) co_return;
  size_t total = 0;
  for (;;) {
    auto part = co_await answer.read_body();
    if (!part || part->empty()) co_return;
    total += part->size();
    ATOLL_CHECK(total <= most_bytes && method != Method::kHead);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 2) return 0;
  constexpr Method kMethods[] = {Method::kGet, Method::kHead, Method::kPost};
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  GivenUpstream upstream(bytes, size_t{1} + data[0]);
  boost::asio::io_context context;
  // detached: owned by the context, which runs until it has ended
  boost::asio::co_spawn(context, read_answer(upstream, kMethods[data[1] % 3], bytes.size()),
                        boost::asio::detached);
  context.run();
  return 0;
}
