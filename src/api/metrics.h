// GET /metrics, for Prometheus. The figures are of the whole host, so the key must be one of the
// tenant that runs it.
#pragma once

#include <functional>

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api {

struct MetricSources {
  sandbox::Sandboxes& sandboxes;
  const sandbox::Admission& admission;
  std::function<size_t()> open_connections;
};

void add_metrics_route(Router& router, MetricSources sources);

}  // namespace atl::api
