#include "daemon/options.h"

#include <charconv>
#include <chrono>
#include <functional>
#include <map>

#include <boost/asio/ip/address.hpp>

namespace atl::daemon {

namespace {

constexpr uint64_t kMaxTrialSeconds = 600;
constexpr uint64_t kMaxPeerTimeMs = 600'000;

Error invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

Result<uint64_t> parse_number(const std::string& name, const std::string& text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid(name + ": '" + text + "' is not a whole number");
  return number;
}

struct Endpoint {
  std::string address;
  unsigned short port;
};

Result<Endpoint> parse_listen(const std::string& option, const std::string& text) {
  Error refused = invalid(option + ": '" + text + "' is not ADDRESS:PORT");
  size_t colon = text.rfind(':');
  if (colon == text.npos) return refused;
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  ATOLL_TRY(uint64_t port, parse_number(option, text.substr(colon + 1)));
  boost::system::error_code error;
  boost::asio::ip::make_address(address, error);
  if (error || port > 65535) return refused;
  return Endpoint{address, static_cast<unsigned short>(port)};
}

using Setter = std::function<Result<void>(const std::string& value)>;

Setter into_text(std::string& slot) {
  return [&slot](const std::string& value) -> Result<void> {
    slot = value;
    return {};
  };
}

Setter into_number(const char* name, uint64_t& slot) {
  return [&slot, name](const std::string& value) -> Result<void> {
    ATOLL_TRY(slot, parse_number(name, value));
    return {};
  };
}

// For tests, and not an option of `atoll up`: all the time that a slow peer may take for something.
Setter into_peer_times(const char* name, http::Limits& limits) {
  return [&limits, name](const std::string& value) -> Result<void> {
    uint64_t milliseconds = 0;
    ATOLL_TRY(milliseconds, parse_number(name, value));
    if (milliseconds == 0 || milliseconds > kMaxPeerTimeMs)
      return invalid(std::string(name) + " is from 1 to " + std::to_string(kMaxPeerTimeMs));
    std::chrono::milliseconds time(milliseconds);
    limits.header_time = limits.body_time = limits.whole_body_time = limits.write_time = time;
    return {};
  };
}

Result<void> check_reach(const Options& options, const std::string& listened) {
  boost::system::error_code error;
  auto address = boost::asio::ip::make_address(listened, error);
  if (address.is_loopback() || options.allow_remote) return {};
  return invalid("refusing to listen on " + listened +
                 ", which other machines can reach; add --allow-remote if that is wanted");
}

Result<void> check(const Options& options) {
  if (options.state_directory.empty()) return invalid("--state-dir is required");
  if (options.run_directory.empty()) return invalid("--run-dir is required");
  if (options.kvm_trial_seconds > kMaxTrialSeconds) return invalid("--kvm-trial is too long");
  ATOLL_TRY_VOID(check_reach(options, options.listen_address));
  bool tls = !options.tls_listen.address.empty();
  bool has_files = !options.tls_files.certificate.empty() && !options.tls_files.key.empty();
  if (tls != has_files)
    return invalid("--tls-listen, --tls-certificate and --tls-key belong together");
  return tls ? check_reach(options, options.tls_listen.address) : Result<void>();
}

bool take_flag(const std::string& flag, Options& options) {
  if (flag == "--check") {
    options.mode = Options::Mode::kCheck;
  } else if (flag == "--adopt-orphans") {
    options.mode = Options::Mode::kAdopt;
  } else if (flag == "--allow-remote") {
    options.allow_remote = true;
  } else if (flag == "--no-warm-pool") {
    options.warm_pool = false;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  const std::map<std::string, Setter> setters = {
      {"--state-dir", into_text(options.state_directory)},
      {"--run-dir", into_text(options.run_directory)},
      {"--listen",
       [&](const std::string& value) -> Result<void> {
         ATOLL_TRY(Endpoint endpoint, parse_listen("--listen", value));
         options.listen_address = endpoint.address;
         options.listen_port = endpoint.port;
         return {};
       }},
      {"--tls-listen",
       [&](const std::string& value) -> Result<void> {
         ATOLL_TRY(Endpoint endpoint, parse_listen("--tls-listen", value));
         options.tls_listen = {endpoint.address, endpoint.port};
         return {};
       }},
      {"--tls-certificate", into_text(options.tls_files.certificate)},
      {"--tls-key", into_text(options.tls_files.key)},
      {"--domain", into_text(options.domain)},
      {"--host-name",
       [&](const std::string& value) -> Result<void> {
         options.host_names.insert(value);
         return {};
       }},
      {"--max-sandboxes", into_number("--max-sandboxes", options.max_sandboxes)},
      {"--memory-budget", into_number("--memory-budget", options.memory_budget_bytes)},
      {"--disk-budget", into_number("--disk-budget", options.disk_budget_bytes)},
      {"--log-budget", into_number("--log-budget", options.log_budget_bytes)},
      {"--kvm-trial", into_number("--kvm-trial", options.kvm_trial_seconds)},
      {"--gvisor-platform",
       [&](const std::string& value) -> Result<void> {
         if (value != "systrap" && value != "ptrace")
           return invalid("--gvisor-platform is systrap or ptrace");
         options.gvisor_platform =
             value == "ptrace" ? isolate::Platform::kPtrace : isolate::Platform::kSystrap;
         return {};
       }},
      {"--request-rate", into_number("--request-rate", options.traffic.requests_per_second)},
      {"--max-streams", into_number("--max-streams", options.traffic.long_requests)},
      {"--slow-peer-time", into_peer_times("--slow-peer-time", options.http_limits)},
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (take_flag(arguments[i], options)) continue;
    auto setter = setters.find(arguments[i]);
    if (setter == setters.end()) return invalid("unknown option '" + arguments[i] + "'");
    if (i + 1 == arguments.size()) return invalid(arguments[i] + " needs a value");
    ATOLL_TRY_VOID(setter->second(arguments[++i]));
  }
  ATOLL_TRY_VOID(check(options));
  if (!options.domain.empty()) {
    // "api" is where E2B's clients look for the control plane of a domain.
    options.host_names.insert(options.domain);
    options.host_names.insert("api." + options.domain);
  }
  return options;
}

}  // namespace atl::daemon
