#include "cli/egress_commands.h"

#include <stdio.h>

#include <charconv>
#include <functional>
#include <thread>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/readable.h"
#include "egress/learned_policy.h"
#include "egress/policy_file.h"
#include "egress/policy_json.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kFollowPause{500};
constexpr int kDeniedExit = 1;

struct Destination {
  std::string host;
  uint16_t port;
};

Error bad_url(const std::string& url) {
  return Error(Code::kInvalid, "'" + url + "' is not http(s)://HOST[:PORT][/…] or HOST:PORT");
}

Result<Destination> parse_destination(const std::string& url) {
  std::string_view rest = url;
  uint16_t port = 0;
  if (rest.starts_with("https://")) port = 443;
  if (rest.starts_with("http://")) port = 80;
  if (port != 0) rest.remove_prefix(rest.find("://") + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  size_t colon = rest.rfind(':');
  bool bare_v6 = rest.starts_with('[') && rest.ends_with(']');
  if (colon != rest.npos && !bare_v6) {
    std::string_view digits = rest.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size()) return bad_url(url);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (port == 0 || rest.empty()) return bad_url(url);
  return Destination{std::string(rest), port};
}

Result<egress::Explanation> explain(const egress::Policy& policy, const std::string& url) {
  ATOLL_TRY(Destination to, parse_destination(url));
  if (auto address = egress::Address::parse(to.host))
    return egress::explain(policy, *address, to.port);
  if (auto name = egress::HostName::parse(to.host)) return egress::explain(policy, *name, to.port);
  return egress::Explanation{{.reason = "bad_name"}, ""};
}

int print_explanation(const CommandLine& line, const egress::Explanation& explained) {
  const egress::Decision& decision = explained.decision;
  const char* word = decision.allowed() ? "allow" : "deny";
  if (line.format == Format::kJson) {
    json::object object;
    object["decision"] = word;
    object["rule"] = decision.rule;
    object["reason"] = decision.reason;
    object["change"] = explained.change;
    printf("%s\n", json::serialize(object).c_str());
  } else {
    std::string by = decision.rule.empty() ? "" : " by " + decision.rule;
    std::string why = decision.reason.empty() ? "" : " (" + decision.reason + ")";
    printf("%s%s%s\n", word, by.c_str(), why.c_str());
    if (!explained.change.empty()) printf("to allow it: %s\n", explained.change.c_str());
  }
  return decision.allowed() ? 0 : kDeniedExit;
}

std::string field(const json::object& row, const char* name) {
  const json::value* value = row.if_contains(name);
  return value == nullptr ? "-" : readable(*value);
}

void print_row(const json::object& row, Format format) {
  if (format == Format::kJson) {
    printf("%s\n", json::serialize(row).c_str());
    return;
  }
  std::string line;
  for (const char* name : {"time", "event", "decision", "name", "address", "port", "reason"})
    line += (line.empty() ? "" : "  ") + field(row, name);
  if (row.contains("count") && field(row, "count") != "1") line += "  x" + field(row, "count");
  printf("%s\n", line.c_str());
}

using Take = std::function<void(const json::object&)>;

Result<int> read_log(const CommandLine& line, const EgressCommand& egress, const Take& take) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(egress.subject));
  std::string cursor = "0";
  while (true) {
    ATOLL_TRY(json::object page, api.call({.target = target + "/egress?cursor=" + cursor}));
    const json::value* rows = page.if_contains("rows");
    const json::value* next = page.if_contains("next_cursor");
    if (rows == nullptr || !rows->is_array() || next == nullptr || !next->is_string())
      return Error(Code::kCorrupt, "the server's answer has no rows");
    for (const json::value& row : rows->get_array())
      if (row.is_object()) take(row.get_object());
    fflush(stdout);
    cursor = percent_encode(std::string(next->get_string()));
    if (!rows->get_array().empty()) continue;
    if (egress.what != EgressCommand::What::kFollow) return 0;
    std::this_thread::sleep_for(kFollowPause);
  }
}

Result<int> print_log(const CommandLine& line, const EgressCommand& egress) {
  return read_log(line, egress, [&](const json::object& row) { print_row(row, line.format); });
}

Result<int> print_learned(const CommandLine& line, const EgressCommand& egress) {
  egress::LearnedPolicy learned;
  ATOLL_TRY(int done, read_log(line, egress, [&](const json::object& row) { learned.add(row); }));
  if (line.format == Format::kJson) {
    printf("%s\n", egress::policy_text(learned.policy()).c_str());
    return done;
  }
  printf("%s", egress::policy_file_text(learned.policy()).c_str());
  for (const std::string& tried : learned.impossible())
    printf("# no rule can allow: %s\n", readable(json::value(tried)).c_str());
  return done;
}

}  // namespace

Result<int> run_command(const CommandLine& line, const EgressCommand& egress) {
  if (egress.what == EgressCommand::What::kTest) {
    ATOLL_TRY(std::string text, read_file(egress.subject, egress::kMaxPolicyFileBytes));
    ATOLL_TRY(egress::Policy policy, egress::parse_policy_file(text, egress.subject));
    ATOLL_TRY(egress::Explanation explained, explain(policy, egress.url));
    return print_explanation(line, explained);
  }
  if (egress.what == EgressCommand::What::kLearn) return print_learned(line, egress);
  if (egress.what != EgressCommand::What::kExplain) return print_log(line, egress);
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object sandbox, api.show_sandbox(egress.subject));
  const json::value* network = sandbox.if_contains("network");
  if (network == nullptr || !network->is_object())
    return Error(Code::kCorrupt, "the server's answer has no network");
  ATOLL_TRY(egress::Policy policy, egress::policy_from_json(network->get_object()));
  ATOLL_TRY(egress::Explanation explained, explain(policy, egress.url));
  return print_explanation(line, explained);
}

}  // namespace atl::cli
