// The Atoll side of `make bench`: times the HTTP API of a running Atoll over one keep-alive
// connection per client, and prints the samples as one JSON array. bench/run makes the table.
//
//   ATOLL_KEY=... atoll-bench --url http://127.0.0.1:4700 --measure runs [--measure execs ...]
//                             [--runs 100] [--clients 16] [--seconds 10] [--sandboxes 100]
#include <stdio.h>

#include <boost/json/src.hpp>
#include <fmt/format.h>

#include "measures.h"
#include "options.h"

int main(int count, char** arguments) {
  auto options = atl::bench::parse_options(count, arguments);
  if (!options) return 2;
  boost::json::array rows;
  for (const std::string& name : options->measures) {
    auto measured = atl::bench::measure(name, *options);
    if (!measured) {
      fmt::print(stderr, "atoll-bench: {}: {}\n", name, measured.error().message());
      return 1;
    }
    for (boost::json::value& row : *measured) rows.push_back(std::move(row));
  }
  fmt::print("{}\n", boost::json::serialize(rows));
  return 0;
}
