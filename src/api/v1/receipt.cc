#include "api/v1/receipt.h"

#include "api/v1/sandboxes.h"

namespace atl::api::v1 {

namespace {

// The text is the notary's, byte for byte: what was signed is not taken apart here.
http::Task<Reply> show_receipt(Call& call, sandbox::Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<sandbox::Sandbox> sandbox, named_sandbox(call, sandboxes));
  if (sandbox->row().released) co_return sandbox::not_running(*sandbox);
  isolate::Driver& driver = sandboxes.services().driver;
  ATOLL_CO_TRY(std::string receipt, co_await driver.receipt(sandbox->id()));
  http::Response response;
  response.status = 200;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(receipt);
  co_return std::optional(std::move(response));
}

}  // namespace

void add_receipt_route(Router& router, sandbox::Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return show_receipt(call, sandboxes); };
  router.add({http::Method::kGet, "/v1/sandboxes/{id}/receipt", action});
}

}  // namespace atl::api::v1
