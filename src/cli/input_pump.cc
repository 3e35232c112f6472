#include "cli/input_pump.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cli/terminal.h"

namespace atl::cli {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;
// A program may read its input as late as it likes.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);
constexpr int kMaxTries = 50;

bool is_over(const Error& error) {
  return error.reason() == "exec_not_running" || error.reason() == "stdin_closed" ||
         error.code() == Code::kNotFound;
}

}  // namespace

Result<std::unique_ptr<InputPump>> InputPump::start(Api api, ExecName name, int fd) {
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return Error::system("eventfd");
  std::unique_ptr<InputPump> pump(
      new InputPump(std::move(api), std::move(name), fd, std::move(stop)));
  pump->thread_ = std::thread([pump = pump.get()] { pump->run(); });
  return pump;
}

InputPump::~InputPump() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

// False when the pump is to stop.
bool InputPump::wait_for_input() {
  pollfd states[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                     {.fd = fd_, .events = POLLIN, .revents = 0}};
  while (poll(states, 2, -1) < 0 && errno == EINTR) continue;
  return states[0].revents == 0;
}

void InputPump::run() {
  std::string piece(kPieceBytes, '\0');
  while (wait_for_input()) {
    ssize_t count = read(fd_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    Result<void> sent =
        count < 0 ? Result<void>(Error::system("read the input"))
                  : send(std::string_view(piece).substr(0, static_cast<size_t>(count)), count == 0);
    if (!sent && !is_over(sent.error()))
      fprintf(stderr, "atoll: input: %s\n", escape_controls(sent.error().message()).c_str());
    if (!sent || count == 0) return;
  }
}

// With the offset the server takes each byte once, however often it is sent.
Result<void> InputPump::send(std::string_view bytes, bool is_last) {
  ATOLL_TRY(std::string target, exec_target(name_.sandbox, name_.exec));
  target += "/stdin?offset=" + std::to_string(offset_) + (is_last ? "&eof=true" : "");
  Api::Call call{.method = http::Method::kPost, .target = target, .timeout = kLongest};
  call.headers.add("Content-Type", "application/octet-stream");
  for (int attempt = 1;; ++attempt) {
    std::string_view left = bytes;
    auto source = [&](std::span<char> piece) -> Result<size_t> {
      size_t count = std::min(piece.size(), left.size());
      memcpy(piece.data(), left.data(), count);
      left.remove_prefix(count);
      return count;
    };
    auto answer = api_.upload(call, {source, bytes.size()});
    if (answer) break;
    if (answer.error().code() != Code::kUnavailable || attempt == kMaxTries)
      return std::move(answer).error();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  offset_ += bytes.size();
  return {};
}

}  // namespace atl::cli
