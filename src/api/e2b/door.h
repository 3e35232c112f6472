// E2B's door: with E2B_API_URL and E2B_SANDBOX_URL set to this server, E2B's own clients work with
// it. A thin adapter: what the routes of /v1 do is done by the same calls.
#pragma once

#include "api/e2b/plane.h"
#include "api/e2b/template_orders.h"
#include "api/e2b/watch.h"
#include "api/router.h"

namespace atl::api::e2b {

class Door {
 public:
  // Adds its routes. It, and what the plane stands on, outlive the router's calls.
  Door(Router& router, Traffic& traffic, Plane plane);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

 private:
  TokenIndex index_;
  Search search_;
  sandbox::VolumeRooms rooms_;
  Watchers watchers_;
  TemplateOrders orders_;
};

}  // namespace atl::api::e2b
