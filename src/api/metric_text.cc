#include "api/metric_text.h"

#include <iterator>

#include <fmt/format.h>

namespace atl::api {

namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

}  // namespace

void MetricText::begin(Kind kind, std::string_view name, std::string_view help) {
  head(name, help, kind == Kind::kCounter ? "counter" : "gauge");
}

void MetricText::sample(double value, const Labels& labels) { line("", labels, value); }

void MetricText::add(Kind kind, std::string_view name, std::string_view help, double value) {
  begin(kind, name, help);
  sample(value);
}

void MetricText::add(std::string_view name, std::string_view help,
                     const sandbox::Histogram& histogram) {
  constexpr auto& kBounds = sandbox::Histogram::kBoundSeconds;
  head(name, help, "histogram");
  for (size_t i = 0; i < kBounds.size(); ++i) {
    std::string bound = fmt::format("{}", kBounds[i]);
    line("_bucket", {{"le", bound}}, static_cast<double>(histogram.up_to(i)));
  }
  auto all = static_cast<double>(histogram.up_to(kBounds.size()));
  line("_bucket", {{"le", "+Inf"}}, all);
  line("_sum", {}, histogram.sum_seconds());
  line("_count", {}, all);
}

void MetricText::head(std::string_view name, std::string_view help, std::string_view kind) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
}

void MetricText::line(std::string_view suffix, const Labels& labels, double value) {
  text_.append(name_).append(suffix);
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += i == 0 ? '{' : ',';
    text_.append(labels[i].first).append("=\"");
    append_escaped(text_, labels[i].second);
    text_ += '"';
  }
  if (!labels.empty()) text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

}  // namespace atl::api
