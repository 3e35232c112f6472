// TestServer: the whole request path, from bytes on loopback to a fake driver, in a thread of its
// own. For tests of api/ and the fuzzing of the request path.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "api/health.h"
#include "api/metrics.h"
#include "api/openapi.h"
#include "api/v1/archive.h"
#include "api/v1/artifacts.h"
#include "api/v1/execs.h"
#include "api/v1/files.h"
#include "api/v1/fork.h"
#include "api/v1/keys.h"
#include "api/v1/limits.h"
#include "api/v1/pause.h"
#include "api/v1/ports.h"
#include "api/v1/receipt.h"
#include "api/v1/run.h"
#include "api/v1/sandboxes.h"
#include "api/v1/seals.h"
#include "api/v1/snapshots.h"
#include "api/v1/usage.h"
#include "async/spawn.h"
#include "base/eventually.h"
#include "http/client.h"
#include "http/server.h"
#include "sandbox/test_bed.h"

namespace atl::api {

class TestServer {
 public:
  explicit TestServer(http::Limits limits = {}, TrafficLimits traffic_limits = {})
      : traffic(bed.clock, traffic_limits) {
    key = bed.draw_key();
    add_health_routes(router, health);
    add_openapi_route(router);
    v1::add_sandbox_routes(router, bed.sandboxes());
    v1::add_exec_routes(router, bed.sandboxes());
    v1::add_file_routes(router, bed.sandboxes());
    v1::add_archive_routes(router, bed.sandboxes());
    v1::add_artifact_routes(router, bed.sandboxes());
    v1::add_pause_routes(router, bed.sandboxes());
    v1::add_snapshot_routes(router, bed.sandboxes(), snapshots, seals);
    v1::add_seal_routes(router, seals, idempotency);
    v1::add_fork_route(router, bed.sandboxes(), snapshots);
    v1::add_port_routes(router, bed.sandboxes(), port_tokens);
    v1::add_run_route(router, bed.sandboxes());
    v1::add_receipt_route(router, bed.sandboxes());
    v1::add_key_routes(router, bed.keys());
    v1::add_usage_routes(router, bed.sandboxes());
    v1::add_limits_route(router, bed.sandboxes(), bed.admission());
    auto open_connections = [this] { return server_->open_connections(); };
    add_metrics_route(router, {bed.sandboxes(), bed.admission(), open_connections});
    router.set_ready();
    auto serve = [this](http::Exchange& exchange) { return router.serve(exchange); };
    auto listening = http::Server::listen(bed.context(), "127.0.0.1", 0,
                                          http::Rules{limits, serve, Router::refuse});
    ATOLL_CHECK(listening.ok());
    server_ = std::move(*listening);
    port = server_->port();
    // detached: owned by this server, whose destructor waits for it
    spawn(bed.context().get_executor(), run_server());
    thread_ = std::thread([this] {
      while (!done_) bed.step();
    });
  }
  ~TestServer() {
    client_.reset();  // a server that stops leaves a kept connection a second
    boost::asio::post(bed.context(), [this] { server_->stop(); });
    thread_.join();
    server_.reset();
  }

  http::Response send(http::Method method, const std::string& target, std::string body = "") {
    http::Headers headers{{"Authorization", "Bearer " + key}};
    if (!body.empty()) headers.add("Content-Type", "application/json");
    return send_as(method, target, headers, std::move(body));
  }
  http::Response send_as(http::Method method, const std::string& target,
                         const http::Headers& headers, std::string body = "") {
    if (!client_) client_ = http::Client::create("127.0.0.1", port, test_timeout());
    auto response = client_->send(method, target, headers, std::move(body));
    ATOLL_CHECK(response.ok());
    return std::move(*response);
  }

  // Does something on the thread that owns the sandboxes, and waits for it.
  void run_inside(std::function<void()> work) {
    std::promise<void> done;
    boost::asio::post(bed.context(), [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  bool has_connections_in_time(size_t count) {
    return eventually([&] {
      size_t open = 0;
      run_inside([&] { open = server_->open_connections(); });
      return open == count;
    });
  }

  // Before the bed: its tasks may hold blobs until it ends.
  std::unique_ptr<store::DirectoryBlobs> blobs;
  std::optional<store::BlobKeeper> keeper;
  sandbox::TestBed bed;
  sandbox::Snapshots snapshots{bed.sandboxes(), bed.admission()};
  sandbox::Seals seals{
      bed.sandboxes(), snapshots, {keep_blobs(), bed.directory(), {1 << 20, 1 << 20, 1 << 20}}};
  sandbox::PortTokens port_tokens =
      sandbox::PortTokens::open(bed.directory() + "/port.key").value();
  std::string key;
  sandbox::Idempotency idempotency{bed.context().get_executor(), bed.ledger(), bed.clock};
  Traffic traffic;
  Health health{bed.clock};
  Router router{bed.keys(), idempotency, traffic, {}};
  unsigned short port = 0;

 private:
  store::BlobKeeper& keep_blobs() {
    blobs = store::DirectoryBlobs::open(bed.directory() + "/blobs", 0).value();
    return keeper.emplace(*blobs);
  }

  http::Task<void> run_server() {
    co_await server_->run();
    done_ = true;
  }

  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Client> client_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace atl::api
