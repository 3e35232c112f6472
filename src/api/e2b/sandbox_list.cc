#include "api/e2b/sandbox_list.h"

#include <algorithm>

#include <boost/json/parse.hpp>

#include "api/json_reader.h"
#include "api/query.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Sandbox;

namespace {

constexpr uint64_t kMaxPage = 100;
constexpr size_t kMaxFilters = 64;

struct Filter {
  TextPairs metadata = {};
  bool running = true;
  bool paused = true;
  bool newest_first = true;
  std::string started_after = {};  // RFC 3339
  std::optional<std::string> template_name = {};
  size_t limit = kMaxPage;
  std::optional<store::SandboxCursor> after = {};
};

std::optional<std::string> decoded(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return http::percent_decode(text);
}

// The clients encode each key and value, join them, encode the whole, and encode that as a
// parameter of the query, which is decoded already.
Result<TextPairs> parse_metadata(const std::string& parameter) {
  auto joined = decoded(parameter);
  if (!joined) return invalid_parameter("metadata", "is malformed");
  TextPairs pairs;
  std::string_view rest = *joined;
  while (!rest.empty()) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    auto key = decoded(std::string(pair.substr(0, equals)));
    auto value = decoded(std::string(equals == pair.npos ? "" : pair.substr(equals + 1)));
    if (!key || !value || pairs.size() >= kMaxFilters)
      return invalid_parameter("metadata", "is malformed or names too many keys");
    pairs.emplace_back(std::move(*key), std::move(*value));
  }
  return pairs;
}

// "running,paused"
Result<void> parse_states(const std::string& states, Filter& filter) {
  std::string_view rest = states;
  filter.running = filter.paused = false;
  while (!rest.empty()) {
    std::string_view state = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), state.size() + 1));
    if (state != "running" && state != "paused")
      return invalid_parameter("state", "may be running and paused");
    (state == "running" ? filter.running : filter.paused) = true;
  }
  return {};
}

Result<Filter> parse_filter(const http::Request& request) {
  Filter filter;
  ATOLL_TRY(auto metadata, text_parameter("metadata", request));
  ATOLL_TRY(auto state, text_parameter("state", request));
  ATOLL_TRY(auto order, text_parameter("order", request));
  ATOLL_TRY(auto started_after, text_parameter("startedAfter", request));
  ATOLL_TRY(filter.template_name, text_parameter("template", request));
  ATOLL_TRY(auto limit, number_parameter("limit", request));
  ATOLL_TRY(auto token, text_parameter("nextToken", request));
  if (metadata) {
    ATOLL_TRY(filter.metadata, parse_metadata(*metadata));
  }
  if (state && !state->empty()) ATOLL_TRY_VOID(parse_states(*state, filter));
  if (order && *order != "asc" && *order != "desc")
    return invalid_parameter("order", "must be asc or desc");
  filter.newest_first = order.value_or("desc") == "desc";
  filter.started_after = started_after.value_or("");
  if (limit && (*limit < 1 || *limit > kMaxPage))
    return invalid_parameter("limit", "must be from 1 to 100");
  filter.limit = limit.value_or(kMaxPage);
  if (token && !token->empty()) filter.after = store::SandboxCursor::parse(*token);
  if (token && !token->empty() && !filter.after)
    return invalid_parameter("nextToken", "is not one that this API gave out");
  return filter;
}

bool has_metadata(const store::SandboxRow& row, const TextPairs& wanted) {
  if (wanted.empty()) return true;
  json::error_code error;
  json::value value = json::parse(row.metadata, error);
  if (error || !value.is_object()) return false;
  for (const auto& [key, text] : wanted) {
    const json::value* found = value.get_object().if_contains(key);
    if (!found || !found->is_string() || std::string_view(found->get_string()) != text)
      return false;
  }
  return true;
}

// Times of one length and zone compare as texts do, digit by digit.
bool started_after(const store::SandboxRow& row, std::string_view time) {
  std::string started = to_rfc3339(WallTime{std::chrono::milliseconds(row.created_at_ms)});
  size_t common = std::min(time.find_first_of("Z+"), started.size() - 1);
  return std::string_view(started).substr(0, common) >= time.substr(0, common);
}

bool fits(const Sandbox& sandbox, const Filter& filter) {
  const store::SandboxRow& row = sandbox.row();
  bool shown = (filter.running && sandbox.state() == sandbox::State::kRunning) ||
               (filter.paused && sandbox.state() == sandbox::State::kPaused);
  return shown && (!filter.template_name || row.template_name == *filter.template_name) &&
         (filter.started_after.empty() || started_after(row, filter.started_after)) &&
         has_metadata(row, filter.metadata);
}

auto place_of(const Sandbox& sandbox) { return std::pair(sandbox.row().sequence, sandbox.id()); }

}  // namespace

Result<SandboxPage> list_sandboxes(sandbox::Sandboxes& all, store::TenantId tenant,
                                   const http::Request& request) {
  ATOLL_TRY(Filter filter, parse_filter(request));
  SandboxPage page;
  for (const auto& [id, sandbox] : all.all()) {
    if (!all.find(tenant, id) || !fits(*sandbox, filter)) continue;
    auto place = place_of(*sandbox);
    bool is_behind = true;
    if (filter.after) {
      auto after = std::pair(filter.after->sequence, filter.after->id);
      is_behind = filter.newest_first ? place < after : after < place;
    }
    if (is_behind) page.sandboxes.push_back(sandbox);
  }
  auto before = [&](const auto& a, const auto& b) {
    return filter.newest_first ? place_of(*b) < place_of(*a) : place_of(*a) < place_of(*b);
  };
  std::sort(page.sandboxes.begin(), page.sandboxes.end(), before);
  if (page.sandboxes.size() > filter.limit) {
    page.sandboxes.resize(filter.limit);
    page.next_token = store::SandboxCursor::of(page.sandboxes.back()->row()).string();
  }
  return page;
}

}  // namespace atl::api::e2b
