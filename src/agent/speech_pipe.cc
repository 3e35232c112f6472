#include "agent/speech_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>

namespace atl::agent {
namespace {

constexpr int kNothing = -1;  // nothing is ever cut, so nothing is swallowed

uint64_t queued(const OutputPipe& pipe) {
  int bytes = 0;
  bool counted = pipe.fd() >= 0 && ioctl(pipe.fd(), FIONREAD, &bytes) == 0;
  return counted ? static_cast<uint64_t>(bytes) : 0;
}

uint64_t taken(const OutputPipe& pipe) { return pipe.stream().produced() + pipe.stream().cut(); }

}  // namespace

void SpeechPipe::open(Fd socket) {
  // The program's end is another description: it blocks as programs expect.
  if (fcntl(socket.get(), F_SETFL, O_RDWR | O_NONBLOCK) != 0) return;
  pipe_.open(std::move(socket), OutputPipe::Kind::kPipe);
}

bool SpeechPipe::wants_notice() const {
  return pipe_.wants_read() && !taken_after_ && stream().sent() == stream().produced();
}

void SpeechPipe::noticed(const Printed& printed) {
  if (!wants_notice()) return;
  taken_after_ = {taken(printed[0]) + queued(printed[0]), taken(printed[1]) + queued(printed[1])};
}

void SpeechPipe::take(const Printed& printed) {
  if (!taken_after_) return;
  for (size_t i = 0; i < printed.size(); ++i)
    // A program can open its own pipe and read from it: then it is empty before its time.
    if (taken(printed[i]) < (*taken_after_)[i] && queued(printed[i]) > 0) return;
  taken_after_.reset();
  read(printed);
}

void SpeechPipe::read(const Printed& printed) {
  pipe_.read_some(kNothing);
  for (size_t i = 0; i < printed.size(); ++i) sent_after_[i] = printed[i].stream().produced();
}

std::string_view SpeechPipe::unsent(const Printed& printed) const {
  for (size_t i = 0; i < printed.size(); ++i)
    if (printed[i].stream().sent() < sent_after_[i]) return {};
  return stream().unsent();
}

void SpeechPipe::finish() {
  taken_after_.reset();
  pipe_.finish();
}

void SpeechPipe::drain(const Printed& printed) {
  for (const OutputPipe& pipe : printed)
    if (!pipe.finished()) return;
  while (pipe_.wants_read()) read(printed);
}

}  // namespace atl::agent
