#include "api/received_file.h"

#include <span>
#include <string>

namespace atl::api {

namespace {

constexpr size_t kStepBytes = 64 * 1024;

}  // namespace

http::Task<Result<Fd>> receive_file(Call& call, store::Arrival arrival) {
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) break;
    ATOLL_CO_TRY_VOID(arrival.write({buffer.data(), count}));
  }
  Fd file = arrival.take();
  co_return file;
}

}  // namespace atl::api
