// TestBed: everything of atolld's inside with a fake driver and a fake clock, on real SQLite and
// real files in a directory of its own. For tests of sandbox/ and api/ and the fuzzing of the
// request path.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "async/spawn.h"
#include "base/check.h"
#include "base/eventually.h"
#include "base/file.h"
#include "isolate/fake_driver.h"
#include "sandbox/keys.h"
#include "sandbox/sandboxes.h"
#include "store/key_file.h"

namespace atl::sandbox {

class TestBed {
 public:
  TestBed() { start(); }
  ~TestBed() {
    stop();
    std::filesystem::remove_all(directory_);
  }
  TestBed(const TestBed&) = delete;
  TestBed& operator=(const TestBed&) = delete;

  // As kill -9 of atolld and a new start: only what is on disk and in the isolates survives.
  void restart() {
    parts_->ledger.finish();
    parts_.reset();
    parts_.emplace(*this);
  }

  // Runs one task to its end.
  template <typename T>
  T run(Task<T> task) {
    std::optional<T> result;
    // detached: owned by this call, which waits for it
    spawn(context().get_executor(), keep(std::move(task), result));
    while (!result) step();
    return std::move(*result);
  }
  // A moment of atolld's life and of its agents'.
  void step() {
    if (context().stopped()) context().restart();
    context().run_for(std::chrono::milliseconds(1));
    if (world.stopped()) world.restart();
    world.poll();
  }
  // Lets everything that is ready happen, and what follows from it; however slow the disk is.
  void settle() {
    auto nothing = [](store::Catalog&) { return true; };
    for (int i = 0; i < 20; ++i) {
      step();
      run(ledger().run(nothing));  // behind all that it was asked for
    }
  }

  CreateSandbox create_request() const {
    CreateSandbox request;
    request.template_name = "python";
    return request;
  }
  std::shared_ptr<Sandbox> create() {
    auto created = run(sandboxes().create(store::kLocalTenant, create_request()));
    ATOLL_CHECK(created.ok());
    return created->sandbox;
  }
  std::shared_ptr<Exec> start_exec(Sandbox& sandbox, std::vector<std::string> arguments) {
    ExecRequest request;
    request.arguments = std::move(arguments);
    request.output_limit_bytes = limits_of(sandbox.row()).output_bytes;
    auto exec = run(sandbox.start_exec(std::move(request), "{}"));
    ATOLL_CHECK(exec.ok());
    return *exec;
  }
  store::ExecRow run_exec(Sandbox& sandbox, std::vector<std::string> arguments) {
    auto exec = start_exec(sandbox, std::move(arguments));
    ATOLL_CHECK(run(exec->wait_ended(std::chrono::steady_clock::now() + test_timeout())));
    return exec->row();
  }

  boost::asio::io_context& context() { return parts_->context; }
  // A key that is in force for the local tenant.
  std::string draw_key() {
    auto ensure = [path = directory_ + "/local.key"](store::Catalog& catalog) {
      return store::ensure_local_key(catalog, path);
    };
    return must(run(ledger().run(ensure)));
  }
  Sandboxes& sandboxes() { return parts_->sandboxes; }
  Ledger& ledger() { return parts_->ledger; }
  Keys& keys() { return parts_->keys; }
  Admission& admission() { return parts_->admission; }
  const std::string& directory() const { return directory_; }

  boost::asio::io_context world;  // where the agents live, whatever happens to atolld
  FakeClock clock;
  std::unique_ptr<isolate::FakeDriver> driver;
  Budget budget{.sandboxes = 10,
                .memory_bytes = 64ull << 30,
                .disk_bytes = 64ull << 30,
                .free_space_floor_bytes = 0,
                .state_directory = "/"};

 private:
  struct Parts {
    explicit Parts(TestBed& bed)
        : admission(bed.budget),
          ledger(must(store::Catalog::open(bed.directory_ + "/atoll.db"))),
          outputs(must(store::OutputLogs::open(bed.directory_ + "/outputs", 1ull << 30))),
          artifacts(must(store::Artifacts::open(bed.directory_ + "/artifacts", 1ull << 30))),
          installed(must(store::Templates::open(bed.directory_ + "/templates"))),
          templates(installed, bed.directory_ + "/built-in"),
          keys(ledger),
          sandboxes({context.get_executor(), *bed.driver, ledger, bed.clock, outputs, artifacts},
                    admission, templates) {}
    Admission admission;
    Ledger ledger;
    store::OutputLogs outputs;
    store::Artifacts artifacts;
    store::Templates installed;
    Templates templates;
    boost::asio::io_context context;  // after what suspended coroutines hold
    Keys keys;
    Sandboxes sandboxes;
  };

  template <typename T>
  static T must(Result<T> result) {
    ATOLL_CHECK(result.ok());
    return std::move(*result);
  }
  template <typename T>
  static Task<void> keep(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }

  void start() {
    // In memory: hundreds of tests would wait for a disk whose syncs none of them is about.
    char name[] = "/dev/shm/atoll-test-bed-XXXXXX";
    ATOLL_CHECK(mkdtemp(name) != nullptr);
    directory_ = name;
    std::filesystem::create_directories(directory_ + "/outputs");
    std::filesystem::create_directories(directory_ + "/templates/python");
    ATOLL_CHECK(replace_file(directory_ + "/templates/python/template.toml",
                             "name = \"python\"\ndescription = \"for tests\"\n[image]\n"
                             "debian = { suite = \"bookworm\", packages = [\"python3\"] }\n",
                             0644)
                    .ok());
    ATOLL_CHECK(
        replace_file(directory_ + "/templates/python/image", std::string(64, 'a') + "\n", 0644)
            .ok());
    driver = std::make_unique<isolate::FakeDriver>(world.get_executor());
    parts_.emplace(*this);
  }
  void stop() {
    parts_->ledger.finish();
    parts_.reset();
    driver.reset();
  }

  std::string directory_;
  std::optional<Parts> parts_;
};

// Lets the bed live on until that is so; false when it was not in time.
template <typename Condition>
bool step_until(TestBed& bed, Condition condition) {
  auto end = std::chrono::steady_clock::now() + test_timeout();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    bed.step();
  }
  return true;
}

inline void sweep(TestBed& bed) {
  auto swept = [](Sandboxes& sandboxes) -> Task<int> {
    co_await sandboxes.sweep();
    co_return 0;
  };
  bed.run(swept(bed.sandboxes()));
}

}  // namespace atl::sandbox
