#include "api/v1/egress.h"

#include <charconv>

#include "api/v1/sandboxes.h"
#include "api/v1/secrets.h"

namespace atl::api::v1 {

namespace {

Result<uint64_t> parse_cursor(const std::string& query) {
  auto values = http::query_parameters(query, "cursor");
  uint64_t offset = 0;
  if (values && values->empty()) return offset;
  bool one = values && values->size() == 1;
  const char* begin = one ? values->front().data() : nullptr;
  const char* end = one ? begin + values->front().size() : nullptr;
  if (one) {
    auto [stop, error] = std::from_chars(begin, end, offset);
    if (error == std::errc() && stop == end) return offset;
  }
  return Error(Code::kInvalid, "cursor is not one that this API gave out")
      .with_reason("invalid_field")
      .with_field("cursor");
}

// The rows are those of the log, byte for byte: their chain can be checked.
std::string page_text(const isolate::EgressPage& page) {
  std::string body = "{\"rows\":[";
  for (size_t i = 0; i < page.rows.size(); ++i) {
    if (i > 0) body += ",";
    body += page.rows[i];
  }
  return body + "],\"next_cursor\":\"" + std::to_string(page.next) + "\"}";
}

http::Task<Reply> show_egress(Call& call, sandbox::Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<sandbox::Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(uint64_t offset, parse_cursor(call.exchange.request().query));
  isolate::Driver& driver = sandboxes.services().driver;
  ATOLL_CO_TRY(isolate::EgressPage page, co_await driver.read_egress(sandbox->id(), offset));
  http::Response response;
  response.status = 200;
  response.headers.add("Content-Type", "application/json");
  response.body = page_text(page);
  co_return std::optional(std::move(response));
}

}  // namespace

void add_egress_route(Router& router, sandbox::Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return show_egress(call, sandboxes); };
  router.add({http::Method::kGet, "/v1/sandboxes/{id}/egress", action});
  add_secret_routes(router, sandboxes);
}

}  // namespace atl::api::v1
