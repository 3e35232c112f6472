#include "egress/header_write.h"

#include <algorithm>

#include "http/message.h"
#include "http/parser.h"

namespace atl::egress {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

struct Field {
  std::string_view name;
  std::string value;
};

Error not_bound(const char* why) {
  return Error(Code::kDenied, why).with_reason("secret_not_bound");
}

// A secret without hosts is bound by the policy that names it.
Result<void> check_bound(const Secret* secret, const HeaderSetting& setting,
                         const SwapPlace& place) {
  if (secret == nullptr) return not_bound("the secret is gone");
  if (!place.is_tls) return not_bound("the connection is not encrypted");
  if (secret->hosts.empty()) return {};
  if (!secret->is_for(*place.host)) return not_bound("the secret is not for this host");
  if (!secret->is_for_path(place.path)) return not_bound("the secret is not for this path");
  if (!secret->header) return {};
  const HeaderForm& form = *secret->header;
  std::string wanted = form.before + "${secrets." + secret->name + "}" + form.after;
  if (!http::equal_ignoring_case(form.name, setting.name) || setting.value != wanted)
    return not_bound("the secret is not for this header field");
  return {};
}

Result<std::string> fill_value(const HeaderSetting& setting, const SwapPlace& place,
                               const FindSecret& find) {
  ATOLL_TRY(auto pieces, cut_value(setting.value));
  std::string value;
  for (const ValuePiece& piece : pieces) {
    if (!piece.is_secret) {
      value += piece.text;
      continue;
    }
    const Secret* secret = find(std::string(piece.text));
    ATOLL_TRY_VOID(check_bound(secret, setting, place));
    ATOLL_TRY_VOID(check_swapped_bytes(value.size() + secret->value.size()));
    value += secret->value;
  }
  return value;
}

bool has_field(const std::vector<Field>& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return http::equal_ignoring_case(field.name, name);
  });
}

// Whoever names a field in Connection has the next proxy take it out (RFC 9110, 7.6.1).
Result<void> check_not_listed(std::string_view head, const std::vector<Field>& fields) {
  http::RequestParser parser;
  bool is_bad = parser.parse_header(head).has_value();
  http::Request request = is_bad ? http::Request() : parser.take_request();
  for (const Field& field : fields)
    if (is_bad || request.headers.lists("connection", field.name))
      return Error(Code::kDenied, "Connection names a field that the policy sets")
          .with_reason("bad_http");
  return {};
}

// Null: none is for the host.
const HeaderSetting* most_exact(std::span<const HeaderSetting> settings, const HostName& host) {
  const HeaderSetting* best = nullptr;
  for (const HeaderSetting& one : settings) {
    if (!one.is_for(host)) continue;
    bool is_better = best == nullptr || !one.is_beneath ||
                     (best->is_beneath && one.host.view().size() > best->host.view().size());
    if (is_better) best = &one;
  }
  return best;
}

}  // namespace

Result<std::string> write_headers(std::string_view head, const SwapPlace& place,
                                  std::span<const HeaderSetting> settings, const FindSecret& find) {
  const HeaderSetting* best = place.host ? most_exact(settings, *place.host) : nullptr;
  if (best == nullptr) return std::string(head);
  std::vector<Field> fields;
  size_t bytes = head.size();
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    bool counts = setting->host == best->host && setting->is_beneath == best->is_beneath;
    if (!counts || has_field(fields, setting->name)) continue;
    ATOLL_TRY(std::string value, fill_value(*setting, place, find));
    bytes += setting->name.size() + value.size();
    ATOLL_TRY_VOID(check_swapped_bytes(bytes));
    fields.push_back({setting->name, std::move(value)});
  }
  ATOLL_TRY_VOID(check_not_listed(head, fields));
  std::string written;
  for (size_t start = 0; start < head.size();) {
    size_t end = head.find(kLineEnd, start);
    std::string_view line = head.substr(start, end - start);
    if (line.empty())
      for (const Field& field : fields)
        written.append(field.name).append(": ").append(field.value).append(kLineEnd);
    bool is_request = start == 0;
    if (is_request || line.empty() || !has_field(fields, line.substr(0, line.find(':'))))
      written.append(line).append(kLineEnd);
    if (end == head.npos) break;
    start = end + kLineEnd.size();
  }
  return written;
}

}  // namespace atl::egress
