// From a Start to a running program: the clone into its leaf, and in the child the steps that turn
// a copy of the agent into the program. Used by the agent where it starts programs itself, and by
// the spawner.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "agent/file_protocol.h"
#include "agent/protocol.h"
#include "base/fd.h"
#include "base/result.h"
#include "linux/clone.h"

namespace atl::agent {

// Descriptors of the caller that the new process takes over.
struct StartFds {
  int leaf;  // cgroup directory
  int standard_input;
  int stdout_pipe;
  int stderr_pipe;
  int report;        // write end of a pipe, close-on-exec; see StartReport
  int file_rules;    // of Landlock, or -1 where the kernel has none
  int control = -1;  // the program's end of its control socket, if it has one
  int imprint = -1;  // of kImprint, which has a control socket
};

// Who becomes the parent: the caller, or the caller's own parent (the spawner's children are the
// agent's).
enum class Parent : uint8_t { kCaller, kCallersParent };

// What the new process is when it has taken all steps: the program of the Start, or, without an
// execve, the birth probe (probe.h), a file worker, or the program of an imprint (imprint.h). The
// sentry is a program behind its own filter, and so is its probe; the same with what runs a
// machine. That has no huge pages: it asks for them where it uses a part of each.
enum class Becomes : uint32_t {
  kProgram,
  kProbe,
  kWorker,
  kImprint,
  kSentry,
  kSentryProbe,
  kMachine,
  kMachineProbe
};
inline constexpr Becomes kLastBecomes = Becomes::kMachineProbe;

// The steps of a start, in order. A new process that fails in one writes a StartReport and ends;
// one that succeeds closes the pipe by its execve; the probe closes it too.
enum class StartStep : uint32_t {
  kTerminal,
  kStreams,
  kSignals,
  kLimits,
  kDescriptors,
  kUser,
  kControllingTerminal,
  kOomScore,
  kBoundingSet,
  kIdentity,
  kCapabilities,
  kNoNewPrivileges,
  kDirectory,
  kFileRules,
  kMemoryMarks,
  kFilter,
  kExecute,
  kImprint,
};

struct StartReport {
  StartStep step;
  int32_t system_errno;
};

// The program, its user or its directory is at fault, not the platform.
constexpr bool is_programs_fault(StartStep step) {
  return step == StartStep::kUser || step == StartStep::kDirectory || step == StartStep::kExecute;
}
std::string_view step_name(StartStep step);

struct OpenFilesLimits {
  rlimit programs;  // the soft one is what the sandbox was made with
  rlimit own;
};
// Takes all that the hard limit allows for this process, which needs pipes for many programs.
Result<OpenFilesLimits> raise_open_files_limit();

Result<linux::CloneOutcome> start_process(const Start& start, const StartFds& fds,
                                          const rlimit& open_files, Parent parent,
                                          Becomes becomes = Becomes::kProgram);
// A process behind the same walls that, instead of a program, carries out a file request on its
// standard input; see file_worker.h. `fds.report` is the same socket: a start that fails says so in
// a record.
Result<linux::CloneOutcome> start_worker(const FileRequest& request, const StartFds& fds,
                                         const rlimit& open_files, Parent parent);

}  // namespace atl::agent
