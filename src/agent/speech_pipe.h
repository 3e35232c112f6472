// What a controlled program says on its control socket, as its third output stream. It keeps its
// place among what the program prints: bytes are taken only after all that stood in its other pipes
// when they were noticed, and sent only after that was. A flood from another thread holds nothing
// up, because only what was there before counts.
#pragma once

#include <array>
#include <optional>

#include "agent/output_pipe.h"

namespace atl::agent {

class SpeechPipe {
 public:
  using Printed = std::array<OutputPipe, 2>;  // stdout, stderr

  // The agent's end of the socket. Before it nothing is ever said.
  void open(Fd socket);
  int fd() const { return pipe_.fd(); }
  OutputStream& stream() { return pipe_.stream(); }
  const OutputStream& stream() const { return pipe_.stream(); }

  // Worth a look: there is room, and what was noticed before has been taken and sent.
  bool wants_notice() const;
  // There is something to take.
  void noticed(const Printed& printed);
  // Takes what was noticed, if all that was printed before is taken.
  void take(const Printed& printed);
  // What may be sent now: empty until all that was printed before is sent.
  std::string_view unsent(const Printed& printed) const;

  // The program has ended: takes the rest, once nothing more is printed.
  void finish();
  void drain(const Printed& printed);
  bool finished() const { return pipe_.finished(); }
  void close() { pipe_.release().reset(); }

 private:
  void read(const Printed& printed);

  OutputPipe pipe_{UINT64_MAX};
  std::optional<std::array<uint64_t, 2>> taken_after_;  // how much of each, for what was noticed
  std::array<uint64_t, 2> sent_after_ = {};             // offsets, for what is taken
};

}  // namespace atl::agent
