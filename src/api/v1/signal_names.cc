#include "api/v1/signal_names.h"

#include <signal.h>

#include <charconv>
#include <utility>

namespace atl::api::v1 {

namespace {

constexpr int kLastSignal = 64;
constexpr int kFirstRealTime = 34;  // as glibc and musl count: two are taken by their threads

constexpr std::pair<std::string_view, int> kSignals[] = {
    {"HUP", SIGHUP},        {"INT", SIGINT},       {"QUIT", SIGQUIT},
    {"ILL", SIGILL},        {"TRAP", SIGTRAP},     {"ABRT", SIGABRT},
    {"BUS", SIGBUS},        {"FPE", SIGFPE},       {"KILL", SIGKILL},
    {"USR1", SIGUSR1},      {"SEGV", SIGSEGV},     {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE},      {"ALRM", SIGALRM},     {"TERM", SIGTERM},
    {"STKFLT", SIGSTKFLT},  {"CHLD", SIGCHLD},     {"CONT", SIGCONT},
    {"STOP", SIGSTOP},      {"TSTP", SIGTSTP},     {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},      {"URG", SIGURG},       {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ},      {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF},
    {"WINCH", SIGWINCH},    {"IO", SIGIO},         {"POLL", SIGPOLL},
    {"PWR", SIGPWR},        {"SYS", SIGSYS},       {"RTMIN", kFirstRealTime},
    {"RTMAX", kLastSignal},
};

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '-';
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<int> within(std::optional<int> number, int first) {
  return number && *number >= first && *number <= kLastSignal ? number : std::nullopt;
}

}  // namespace

std::optional<int> signal_number(std::string_view name) {
  if (auto number = whole_number(name)) return within(number, 1);
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const auto& [known, number] : kSignals)
    if (known == name) return number;
  if (name.size() < 7) return std::nullopt;
  auto distance = whole_number(name.substr(6));
  if (!distance || *distance > kLastSignal) return std::nullopt;
  if (name.starts_with("RTMIN+")) return within(kFirstRealTime + *distance, kFirstRealTime);
  if (name.starts_with("RTMAX-")) return within(kLastSignal - *distance, kFirstRealTime);
  return std::nullopt;
}

}  // namespace atl::api::v1
