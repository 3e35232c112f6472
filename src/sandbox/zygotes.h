// Zygotes: for each template whose language can be copied, the imprint of an interpreter that has
// started and imported what the template preloads. Programs of new isolates begin from it, so they
// neither take the time to get there nor the memory.
//
// The zygote itself is an ordinary isolate with an ordinary waiting program; once its imprint is
// taken it is removed. Copies share address layout and hash seed, so an imprint is made anew after
// an hour or 10,000 copies. A template whose interpreter cannot be copied starts cold. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "isolate/agent_link.h"
#include "isolate/imprint_file.h"
#include "isolate/monitor.h"
#include "sandbox/waiting_program.h"

namespace atl::sandbox {

// What a waiting program was started on.
struct Basis {
  Digest image;
  std::optional<Digest> toolbox = {};
  std::optional<isolate::Monitor> monitor = {};
  bool operator==(const Basis&) const = default;
};

// Shared, because a start may still send it when it has been replaced.
using Imprint = std::shared_ptr<const isolate::ImprintFile>;

// What the zygotes have done, for whoever watches them.
struct ZygoteCounts {
  uint64_t made = 0;
  uint64_t failures = 0;
  uint64_t copies = 0;
};

class Zygotes {
 public:
  Zygotes(boost::asio::any_io_executor executor, const Clock& clock)
      : executor_(std::move(executor)), clock_(clock) {}

  // What a program of this template begins from; null: it starts cold. Counts as a copy.
  Imprint find(const std::string& name, const Basis& basis);
  // Whether one should be made now.
  bool wants(const std::string& name, const Basis& basis) const;
  // Takes the imprint of the program that waits at the other end, which ends.
  Task<Result<void>> make(std::string name, Basis basis, std::shared_ptr<isolate::AgentLink> link,
                          uint32_t exec);
  // It could not be made, or a copy did not start: cold for a while. Says why in the log.
  void fail(const std::string& name, const Basis& basis, const Error& why);

  const ZygoteCounts& counts() const { return counts_; }
  size_t size() const;

 private:
  struct Zygote {
    Basis basis;
    Imprint imprint;
    SteadyTime made_at;  // or failed
    uint64_t copies = 0;
  };

  boost::asio::any_io_executor executor_;
  const Clock& clock_;
  std::map<std::string, Zygote, std::less<>> zygotes_;
  ZygoteCounts counts_;
};

// The waiting program of a template, as its zygote runs it: with libraries that start no threads,
// and with a shell for contexts made ahead.
agent::Start zygote_start(agent::Start waiting);

}  // namespace atl::sandbox
