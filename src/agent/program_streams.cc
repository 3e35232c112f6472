#include "agent/program_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/terminal.h"

namespace atl::agent {
namespace {

Error failed(std::string_view operation, int system_errno) {
  return Error(Code::kSystem, std::string(operation), system_errno);
}

Result<Pipe> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return failed("pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

Result<Fd> duplicate(const Fd& fd) {
  Fd copy(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return failed("duplicate", errno);
  return copy;
}

Result<void> open_control(ProgramStreams& streams) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return failed("socketpair", errno);
  streams.ours.control = Fd(pair[0]);
  streams.programs.control = Fd(pair[1]);
  return {};
}

Result<ProgramStreams> open_on_terminal(const TerminalSize& size) {
  auto terminal = open_terminal(size);
  if (!terminal) return failed("open terminal", terminal.error().system_errno());
  ProgramStreams streams;
  ATOLL_TRY(streams.ours.input, duplicate(terminal->master));
  streams.ours.output = std::move(terminal->master);
  ATOLL_TRY(streams.programs.input, duplicate(terminal->program_end));
  ATOLL_TRY(streams.programs.error, duplicate(terminal->program_end));
  streams.programs.output = std::move(terminal->program_end);
  return streams;
}

}  // namespace

Result<Pipe> make_output_pipe() {
  ATOLL_TRY(Pipe pipe, make_pipe());
  if (fcntl(pipe.read_end.get(), F_SETFL, O_RDONLY | O_NONBLOCK) != 0) return failed("pipe", errno);
  return pipe;
}

Result<ProgramStreams> open_streams(const Start& start) {
  if (start.terminal) return open_on_terminal(*start.terminal);
  ProgramStreams streams;
  if (start.control != ControlMode::kNone) ATOLL_TRY_VOID(open_control(streams));
  ATOLL_TRY(Pipe out, make_output_pipe());
  ATOLL_TRY(Pipe err, make_output_pipe());
  streams.ours.output = std::move(out.read_end);
  streams.ours.error = std::move(err.read_end);
  streams.programs.output = std::move(out.write_end);
  streams.programs.error = std::move(err.write_end);
  if (start.input.empty() && start.input_mode == InputMode::kEnds) return streams;
  ATOLL_TRY(Pipe in, make_pipe());
  if (fcntl(in.write_end.get(), F_SETFL, O_WRONLY | O_NONBLOCK) != 0) return failed("pipe", errno);
  streams.ours.input = std::move(in.write_end);
  streams.programs.input = std::move(in.read_end);
  return streams;
}

}  // namespace atl::agent
