#include "measures.h"

#include <functional>
#include <latch>
#include <thread>
#include <vector>

#include "api.h"
#include "figures.h"

namespace atl::bench {
namespace {

namespace json = boost::json;
using Rows = Result<json::array>;

// So that the next call finds the pool full again: what a pool is for.
constexpr std::chrono::milliseconds kPause{60};
// So that the ceilings of a thousand stay within what a host of 24 GiB promises.
constexpr int64_t kIdleMemoryBytes = 64 << 20;

void run_clients(int clients, const std::function<void(Api&)>& work, const Options& options) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&] {
      Api api(options);
      work(api);
    });
}

void time_run(Api& api, Figures& figures) {
  Stopwatch watch;
  auto from_pool = api.run();
  double elapsed = watch.elapsed_ms();
  if (!from_pool) return figures.fail(from_pool.error());
  figures.add(elapsed, *from_pool);
}

// One client that leaves the pool time, and many that do not.
Rows measure_runs(const Options& options) {
  json::array rows;
  Api api(options);
  Figures one, ignored;
  for (int i = 0; i < options.warm_ups + options.runs; ++i) {
    std::this_thread::sleep_for(kPause);
    time_run(api, i < options.warm_ups ? ignored : one);
  }
  rows.push_back(one.row("run", 1));
  Figures many;
  auto work = [&](Api& own) {
    for (int i = 0; i < options.runs; ++i) time_run(own, many);
  };
  run_clients(options.clients, work, options);
  rows.push_back(many.row("run", options.clients));
  return rows;
}

// Creates, runs Python and deletes; the deletion is not part of the times.
Rows time_creates(const Options& options, const json::object& limits) {
  Api api(options);
  Figures creates, runs, both;
  for (int i = -options.warm_ups; i < options.runs; ++i) {
    Stopwatch watch;
    ATOLL_TRY(Created created, api.create(limits));
    double create_ms = watch.elapsed_ms();
    Result<void> ran = api.execute(created.id, python());
    double all_ms = watch.elapsed_ms();
    Result<void> removed = api.remove(created.id);
    if (!ran) return std::move(ran).error();
    if (!removed) return std::move(removed).error();
    if (i < 0) continue;
    creates.add(create_ms, created.from_pool);
    runs.add(all_ms - create_ms, created.from_pool);
    both.add(all_ms, created.from_pool);
  }
  json::array rows;
  rows.push_back(both.row("create+run", 1));
  rows.push_back(creates.row("create", 1));
  rows.push_back(runs.row("first exec", 1));
  return rows;
}

Rows measure_creates(const Options& options) { return time_creates(options, {}); }

// No isolate of the pool has this limit, so that only the interpreter is there ahead: as a copy.
Rows measure_copies(const Options& options) { return time_creates(options, {{"open_files", 512}}); }

Rows measure_contexts(const Options& options) {
  Api api(options);
  ATOLL_TRY(Created sandbox, api.create());
  ATOLL_TRY(std::string context, api.create_context(sandbox.id));
  Figures figures;
  for (int i = -options.warm_ups; i < options.runs; ++i) {
    Stopwatch watch;
    auto ran = api.run_code(context);
    double elapsed = watch.elapsed_ms();
    if (!ran) figures.fail(ran.error());
    if (ran && i >= 0) figures.add(elapsed, sandbox.from_pool);
  }
  ATOLL_TRY_VOID(api.remove(sandbox.id));
  json::array rows;
  rows.push_back(figures.row("context run", 1));
  return rows;
}

void time_execs(Api& api, int warm_ups, int count, Figures& figures) {
  auto sandbox = api.create();
  if (!sandbox) return figures.fail(sandbox.error());
  for (int i = -warm_ups; i < count; ++i) {
    Stopwatch watch;
    auto ran = api.execute(sandbox->id, true_program());
    double elapsed = watch.elapsed_ms();
    if (!ran) figures.fail(ran.error());
    if (ran && i >= 0) figures.add(elapsed, false);
  }
  auto removed = api.remove(sandbox->id);
  if (!removed) figures.fail(removed.error());
}

Rows measure_execs(const Options& options) {
  json::array rows;
  for (int clients : {1, options.clients}) {
    Figures figures;
    auto work = [&](Api& api) { time_execs(api, options.warm_ups, options.runs, figures); };
    run_clients(clients, work, options);
    rows.push_back(figures.row("exec", clients));
  }
  return rows;
}

// All begin at the same moment.
Rows measure_burst(const Options& options) {
  Figures figures;
  std::latch ready(options.sandboxes);
  auto work = [&](Api& api) {
    ready.arrive_and_wait();
    time_run(api, figures);
  };
  run_clients(options.sandboxes, work, options);
  json::array rows;
  rows.push_back(figures.row("burst", options.sandboxes));
  return rows;
}

// Its samples are in the order they ended in, so that a drift can be seen.
Rows measure_sustained(const Options& options) {
  Figures figures;
  Stopwatch watch;
  double limit_ms = options.seconds * 1000.0;
  auto work = [&](Api& api) {
    while (watch.elapsed_ms() < limit_ms) time_run(api, figures);
  };
  run_clients(options.clients, work, options);
  double elapsed_ms = watch.elapsed_ms();
  json::object row = figures.row("sustained", options.clients);
  row["per_second"] = static_cast<double>(figures.samples().size()) * 1000 / elapsed_ms;
  json::array rows;
  rows.push_back(std::move(row));
  return rows;
}

// Keeps sandboxes alive until standard input ends: whoever started this looks at the host's memory
// meanwhile.
Rows measure_idle(const Options& options) {
  Api api(options);
  Figures figures;
  std::vector<std::string> alive;
  for (int i = 0; i < options.sandboxes; ++i) {
    Stopwatch watch;
    auto created = api.create({{"memory_bytes", kIdleMemoryBytes}});
    if (!created) {
      figures.fail(created.error());
      break;
    }
    figures.add(watch.elapsed_ms(), created->from_pool);
    alive.push_back(std::move(created->id));
  }
  puts("alive");
  fflush(stdout);
  while (getchar() != EOF) continue;
  for (const std::string& id : alive) {
    auto removed = api.remove(id);
    if (!removed) figures.fail(removed.error());
  }
  json::array rows;
  rows.push_back(figures.row("idle", options.sandboxes));
  return rows;
}

}  // namespace

Rows measure(std::string_view name, const Options& options) {
  struct {
    std::string_view name;
    Rows (*take)(const Options&);
  } constexpr kMeasures[] = {{"runs", measure_runs},           {"creates", measure_creates},
                             {"execs", measure_execs},         {"burst", measure_burst},
                             {"copies", measure_copies},       {"contexts", measure_contexts},
                             {"sustained", measure_sustained}, {"idle", measure_idle}};
  for (const auto& known : kMeasures)
    if (known.name == name) return known.take(options);
  return Error(Code::kInvalid, "there is no measure " + std::string(name));
}

}  // namespace atl::bench
