// MetricText: figures in the text format of Prometheus, version 0.0.4. Each family is written at
// once: its kind and meaning, then its samples.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/tally.h"

namespace atl::api {

class MetricText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  enum class Kind : unsigned char { kCounter, kGauge };

  // Begins a family; `name` of a counter ends in "_total".
  void begin(Kind kind, std::string_view name, std::string_view help);
  void sample(double value, const Labels& labels = {});
  // A family of one sample.
  void add(Kind kind, std::string_view name, std::string_view help, double value);
  void add(std::string_view name, std::string_view help, const sandbox::Histogram& histogram);

  std::string take() { return std::move(text_); }

 private:
  void head(std::string_view name, std::string_view help, std::string_view kind);
  void line(std::string_view suffix, const Labels& labels, double value);

  std::string text_;
  std::string name_;
};

}  // namespace atl::api
