#include "api/v1/signal_names.h"

#include <signal.h>

#include <utility>

namespace atl::api::v1 {

std::optional<int> signal_number(std::string_view name) {
  static constexpr std::pair<std::string_view, int> kSignals[] = {
      {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},   {"ABRT", SIGABRT},
      {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},   {"PIPE", SIGPIPE},
      {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CHLD", SIGCHLD},   {"CONT", SIGCONT},
      {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"WINCH", SIGWINCH}, {"SEGV", SIGSEGV},
  };
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const auto& [known, number] : kSignals)
    if (known == name) return number;
  return std::nullopt;
}

}  // namespace atl::api::v1
