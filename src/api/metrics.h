// GET /metrics, for Prometheus. The figures are of the whole host, so the key must be one of the
// tenant that runs it.
#pragma once

#include <functional>

#include "api/router.h"
#include "egress/health.h"
#include "sandbox/sandboxes.h"

namespace atl::api {

struct MetricSources {
  sandbox::Sandboxes& sandboxes;
  const sandbox::Admission& admission;
  std::function<size_t()> open_connections;
  std::function<uint64_t()> dropped_connections = {};
  // Whether egress is well; empty: nobody knows.
  std::function<http::Task<Result<egress::Health>>()> egress = {};
};

void add_metrics_route(Router& router, MetricSources sources);

}  // namespace atl::api
