#include "cli/bench_command.h"

#include <stdio.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/api.h"
#include "cli/interrupt.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;
using std::chrono::steady_clock;

enum Step : unsigned { kCreate, kExec, kRemove, kWhole, kSteps };
constexpr std::array<const char*, kSteps> kNames = {"create", "exec", "remove", "whole"};
using Times = std::array<std::vector<double>, kSteps>;

double milliseconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
}

double percentile(const std::vector<double>& sorted, double part) {
  size_t at = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

Result<void> measure_one(Api& api, const std::string& template_name, InterruptGuard& guard,
                         Times& times) {
  auto begin = steady_clock::now();
  ATOLL_TRY(json::object sandbox,
            api.create_sandbox(json::object{{"template", template_name}, {"singleton", false}}));
  times[kCreate].push_back(milliseconds_since(begin));
  std::string id = text_field(sandbox, "id");
  guard.on_interrupt([api, id](int) mutable { (void)api.remove_sandbox(id); });
  auto exec_begin = steady_clock::now();
  auto ran = api.start_exec(id, {{"cmd", {"/bin/true"}}, {"wait", true}, {"timeout_ms", 60'000}});
  times[kExec].push_back(milliseconds_since(exec_begin));
  auto remove_begin = steady_clock::now();
  ATOLL_TRY_VOID(api.remove_sandbox(id));
  guard.on_interrupt({});
  times[kRemove].push_back(milliseconds_since(remove_begin));
  times[kWhole].push_back(milliseconds_since(begin));
  if (!ran) return std::move(ran).error();
  if (text_field(*ran, "verdict") == "ok") return {};
  return Error(Code::kUnavailable, "/bin/true ended with " + readable_field(*ran, "verdict"));
}

}  // namespace

Result<int> run_command(const CommandLine& line, const BenchCommand& bench) {
  ATOLL_TRY(Api api, connect(line));
  InterruptGuard guard;
  Times times;
  for (unsigned i = 0; i < bench.count; ++i)
    ATOLL_TRY_VOID(measure_one(api, bench.template_name, guard, times));
  json::object answer = {{"template", bench.template_name}, {"count", bench.count}};
  if (line.format == Format::kText)
    printf("%u sandboxes of %s, one after the other\n%-8s %10s %10s %10s\n", bench.count,
           escape_line(bench.template_name).c_str(), "", "p50 ms", "p95 ms", "p99 ms");
  for (unsigned step = 0; step < kSteps; ++step) {
    std::vector<double>& values = times[step];
    std::sort(values.begin(), values.end());
    double p50 = percentile(values, 0.5);
    double p95 = percentile(values, 0.95);
    double p99 = percentile(values, 0.99);
    answer[kNames[step]] = {{"p50_ms", p50}, {"p95_ms", p95}, {"p99_ms", p99}};
    if (line.format == Format::kText)
      printf("%-8s %10.2f %10.2f %10.2f\n", kNames[step], p50, p95, p99);
  }
  if (line.format == Format::kJson) print_json(answer);
  return 0;
}

}  // namespace atl::cli
