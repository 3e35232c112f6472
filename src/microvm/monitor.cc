#include "microvm/monitor.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

constexpr int kPatienceMs = 60'000;
constexpr int kStopMs = 1'000;
constexpr int kMaxTries = 30'000;
constexpr unsigned kPauseMicroseconds = 2'000;
constexpr size_t kMaxLineBytes = 64 * 1024;
constexpr int kMaxEvents = 1'000;  // before an answer

}  // namespace

Result<Monitor> Monitor::open(Fd socket) {
  Monitor monitor(std::move(socket));
  ATOLL_TRY(std::string greeting, monitor.read_line(kPatienceMs));
  if (!greeting.starts_with(R"({"QMP": )")) return Error(Code::kCorrupt, "QEMU did not greet");
  ATOLL_TRY([[maybe_unused]] std::string answer, monitor.call(R"({"execute":"qmp_capabilities"})"));
  return monitor;
}

Result<std::string> Monitor::read_line(int patience_ms) {
  while (true) {
    size_t end = received_.find('\n');
    if (end != received_.npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kMaxLineBytes) return Error(Code::kCorrupt, "QEMU says too much");
    pollfd waiting = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, patience_ms) != 1) return Error::from_errno("hear QEMU", ETIMEDOUT);
    char bytes[4096];
    ssize_t count = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return Error(Code::kUnavailable, "QEMU has ended", ECONNRESET);
    received_.append(bytes, static_cast<size_t>(count));
  }
}

Result<void> Monitor::tell(std::string_view command, std::span<const int> fds) {
  std::string line = std::string(command) + "\n";
  ATOLL_TRY_VOID(linux::send_message(socket_.get(), line, fds));
  ++unanswered_;
  return {};
}

Result<std::string> Monitor::await_answer(int patience_ms) {
  for (int i = 0; i < kMaxEvents; ++i) {
    ATOLL_TRY(std::string line, read_line(patience_ms));
    if (line.starts_with(R"({"timestamp": )")) continue;
    bool last = --unanswered_ <= 0;
    if (last && line.starts_with(R"({"return": )")) return line;
    if (last) return Error(Code::kUnavailable, "QEMU refused: " + line);
  }
  return Error(Code::kCorrupt, "QEMU does not answer");
}

Result<std::string> Monitor::call(std::string_view command, std::span<const int> fds) {
  ATOLL_TRY_VOID(tell(command, fds));
  return await_answer(kPatienceMs);
}

Result<void> Monitor::prepare(int file) {
  // The memory is not in what is saved.
  constexpr std::string_view kWithoutMemory =
      R"({"execute":"migrate-set-capabilities","arguments":{"capabilities":)"
      R"([{"capability":"x-ignore-shared","state":true}]}})";
  ATOLL_TRY([[maybe_unused]] std::string set, call(kWithoutMemory));
  int fds[] = {file};
  ATOLL_TRY([[maybe_unused]] std::string given,
            call(R"({"execute":"getfd","arguments":{"fdname":"state"}})", fds));
  return {};
}

Result<void> Monitor::await(std::string_view command, std::string_view wanted,
                            std::string_view refused) {
  for (int i = 0; i < kMaxTries; ++i) {
    ATOLL_TRY(std::string answer, call(command));
    if (answer.find(wanted) != answer.npos) return {};
    if (answer.find(refused) != answer.npos) return Error(Code::kUnavailable, "QEMU: " + answer);
    usleep(kPauseMicroseconds);
  }
  return Error::from_errno("await QEMU", ETIMEDOUT);
}

Result<void> Monitor::save() {
  ATOLL_TRY([[maybe_unused]] std::string begun,
            call(R"({"execute":"migrate","arguments":{"uri":"fd:state"}})"));
  return await(R"({"execute":"query-migrate"})", R"("status": "completed")",
               R"("status": "failed")");
}

// One whose processes are frozen by others does not answer, and would stop when it is thawed.
Result<void> Monitor::stop() {
  ATOLL_TRY_VOID(tell(R"({"execute":"stop"})"));
  auto stopped = await_answer(kStopMs);
  if (stopped) return {};
  ATOLL_TRY_VOID(go_on());
  return std::move(stopped).error();
}

Result<void> Monitor::go_on() { return tell(R"({"execute":"cont"})"); }

Result<void> Monitor::restore() {
  ATOLL_TRY([[maybe_unused]] std::string begun,
            call(R"({"execute":"migrate-incoming","arguments":{"uri":"fd:state"}})"));
  return await(R"({"execute":"query-status"})", R"("status": "running")",
               R"("status": "internal-error")");
}

}  // namespace atl::microvm
