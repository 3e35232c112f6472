#include "warden/protocol.h"

#include <gtest/gtest.h>

namespace atl::warden {
namespace {

bool is_taken(const Request& request) {
  return parse_request({reinterpret_cast<const unsigned char*>(&request), sizeof request}).ok();
}

Request launch_of_a_machine() {
  Request request = {};
  request.magic = kMagic;
  request.version = spoken_version();
  request.operation = Operation::kLaunch;
  SandboxId id = SandboxId::draw();
  id.view().copy(request.sandbox_id.data(), request.sandbox_id.size());
  request.cpu_millis = 1000;
  request.pids = 64;
  request.open_files = 1024;
  request.memory_bytes = 512ull << 20;
  request.disk_bytes = 128ull << 20;
  request.image.fill(1);
  request.nonce.fill(2);
  request.monitor.fill(3);
  request.guest = {.memory_bytes = 128ull << 20,
                   .disk_bytes = 64ull << 20,
                   .cpu_millis = 500,
                   .pids = 256,
                   .open_files = 100,
                   .kind = agent::GuestKind::kMachine};
  return request;
}

TEST(WardenProtocol, AMachineHasLimitsThatAreWithinThoseAroundIt) {
  EXPECT_TRUE(is_taken(launch_of_a_machine()));
  void (*changes[])(Request&) = {
      [](Request& request) { request.guest.memory_bytes = request.memory_bytes + 1; },
      [](Request& request) { request.guest.memory_bytes = 0; },
      [](Request& request) { request.guest.disk_bytes = request.disk_bytes + 1; },
      [](Request& request) { request.guest.cpu_millis = 0; },
      [](Request& request) { request.guest.pids = kMaxPids + 1; },
      [](Request& request) { request.guest.open_files = 1; },
      [](Request& request) { request.guest.kind = agent::GuestKind{4}; },
      [](Request& request) { request.guest.purpose = agent::GuestPurpose{2}; },
      [](Request& request) { request.monitor = {}; },
  };
  for (auto change : changes) {
    Request request = launch_of_a_machine();
    change(request);
    EXPECT_FALSE(is_taken(request));
  }
}

TEST(WardenProtocol, OnlyALaunchIsAboutAMachine) {
  Request launch = launch_of_a_machine();
  Request removal = {};
  removal.magic = launch.magic;
  removal.version = launch.version;
  removal.operation = Operation::kRemove;
  removal.sandbox_id = launch.sandbox_id;
  EXPECT_TRUE(is_taken(removal));
  removal.monitor = launch.monitor;
  EXPECT_FALSE(is_taken(removal));
  removal.monitor = {};
  removal.guest = launch.guest;
  EXPECT_FALSE(is_taken(removal));
}

TEST(WardenProtocol, ARemovalMayKeepTheLayerAndNothingElseMay) {
  Request launch = launch_of_a_machine();
  Request request = {};
  request.magic = launch.magic;
  request.version = launch.version;
  request.operation = Operation::kRemove;
  request.sandbox_id = launch.sandbox_id;
  request.keeps_layer = 1;
  EXPECT_TRUE(is_taken(request));
  request.keeps_layer = 2;
  EXPECT_FALSE(is_taken(request));
  request.keeps_layer = 1;
  request.operation = Operation::kFreeze;
  EXPECT_FALSE(is_taken(request));
}

}  // namespace
}  // namespace atl::warden
