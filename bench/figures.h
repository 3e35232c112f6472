// What was measured: times of single calls, counted together over all clients, as one row of JSON.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "base/result.h"

namespace atl::bench {

class Stopwatch {
 public:
  double elapsed_ms() const {
    auto elapsed = std::chrono::steady_clock::now() - begin_;
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Filled by several threads at once.
class Figures {
 public:
  void add(double milliseconds, bool from_pool);
  void fail(const Error& error);

  // Of all, in the order they ended in.
  std::vector<double> samples() const;
  boost::json::object row(std::string_view measure, int clients) const;

 private:
  mutable std::mutex mutex_;
  std::vector<double> samples_ms_;
  int from_pool_ = 0;
  int failed_ = 0;
  std::string first_failure_;
};

}  // namespace atl::bench
