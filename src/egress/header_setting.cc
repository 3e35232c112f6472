#include "egress/header_setting.h"

#include <algorithm>

#include "egress/secret_use.h"
#include "http/head.h"
#include "http/message.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kMaxTextBytes = 300;
constexpr std::string_view kBeneath = "*.";
constexpr std::string_view kOpen = "${";
constexpr std::string_view kSecrets = "${secrets.";
constexpr char kClose = '}';

// They say where a request ends, which host it is for, or what becomes of the connection: another
// value would make the request another than the one that was decided.
constexpr std::string_view kReserved[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Expect",
    "TE",   "Trailer"};
constexpr std::string_view kOfProxies = "Proxy-";

bool is_reserved(std::string_view name) {
  auto is_same = [&](std::string_view one) { return http::equal_ignoring_case(one, name); };
  return std::any_of(std::begin(kReserved), std::end(kReserved), is_same) ||
         http::equal_ignoring_case(name.substr(0, kOfProxies.size()), kOfProxies);
}

Error wrong(const std::string& why) { return Error(Code::kInvalid, why); }

Error invalid(const std::string& field, const std::string& why) {
  return Error(Code::kInvalid, "network." + field + " " + why)
      .with_reason("invalid_network_rule")
      .with_field("network." + field);
}

Result<std::string> text_of(const json::object& object, const char* key, const std::string& field,
                            size_t most) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr || text->size() > most)
    return invalid(field, "must have a " + std::string(key) + ", a text of at most " +
                              std::to_string(most) + " bytes");
  return std::string(text->data(), text->size());
}

Result<HeaderSetting> read_setting(const json::value& value, const std::string& field) {
  const json::object* object = value.if_object();
  if (object == nullptr) return invalid(field, "must be an object with host, name and value");
  for (const auto& [key, entry] : *object)
    if (key != "host" && key != "name" && key != "value")
      return invalid(field + "." + std::string(key), "is unknown").with_reason("unknown_field");
  ATOLL_TRY(std::string host, text_of(*object, "host", field, kMaxTextBytes));
  ATOLL_TRY(std::string name, text_of(*object, "name", field, kMaxTextBytes));
  ATOLL_TRY(std::string text, text_of(*object, "value", field, kMaxHeaderValueBytes));
  auto setting = HeaderSetting::create(host, std::move(name), std::move(text));
  if (!setting) return invalid(field, "is refused: " + setting.error().message());
  return setting;
}

}  // namespace

Result<HeaderSetting> HeaderSetting::create(std::string_view host, std::string name,
                                            std::string value) {
  bool is_beneath = host.starts_with(kBeneath);
  if (is_beneath) host.remove_prefix(kBeneath.size());
  auto parsed = HostName::parse(host);
  if (!parsed) return wrong("the host must be a name, or *. and a name");
  if (!http::is_token(name)) return wrong("the name is none of a header field");
  if (is_reserved(name)) return wrong("egress does not set the field " + name);
  bool is_trimmed = value.empty() || (value.front() != ' ' && value.back() != ' ');
  if (value.size() > kMaxHeaderValueBytes || !http::is_field_value(value) || !is_trimmed)
    return wrong("the value must be one line without blanks at its ends, at most 4096 bytes");
  ATOLL_TRY_VOID(cut_value(value));
  return HeaderSetting{*parsed, is_beneath, std::move(name), std::move(value)};
}

bool HeaderSetting::is_for(const HostName& destination) const {
  return is_beneath ? destination.is_beneath(host) : destination == host;
}

std::string HeaderSetting::host_text() const {
  return (is_beneath ? std::string(kBeneath) : std::string()) + std::string(host.string());
}

Result<std::vector<ValuePiece>> cut_value(std::string_view value) {
  std::vector<ValuePiece> pieces;
  while (!value.empty()) {
    size_t open = value.find(kOpen);
    if (open != 0) pieces.push_back({value.substr(0, open)});
    if (open == value.npos) break;
    value.remove_prefix(open);
    size_t close = value.find(kClose);
    bool is_reference = value.starts_with(kSecrets) && close != value.npos;
    std::string_view name =
        is_reference ? value.substr(kSecrets.size(), close - kSecrets.size()) : std::string_view();
    if (!is_kept_secret_name(name))
      return wrong("the value has a ${ that is no reference: ${secrets.NAME}");
    pieces.push_back({name, true});
    value.remove_prefix(close + 1);
  }
  return pieces;
}

Result<std::vector<HeaderSetting>> read_header_settings(const json::object& policy) {
  std::vector<HeaderSetting> settings;
  const json::value* value = policy.if_contains("set_headers");
  if (value == nullptr) return settings;
  const json::array* list = value->if_array();
  if (list == nullptr || list->size() > kMaxHeaderSettings)
    return invalid("set_headers", "must be a list of at most 64 objects");
  size_t bytes = 0;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string field = "set_headers[" + std::to_string(i) + "]";
    ATOLL_TRY(HeaderSetting setting, read_setting((*list)[i], field));
    bytes += setting.host_text().size() + setting.name.size() + setting.value.size();
    if (bytes > kMaxHeaderSettingsBytes)
      return invalid("set_headers", "is too long: at most 32 KiB in all");
    settings.push_back(std::move(setting));
  }
  return settings;
}

json::array header_settings_json(const std::vector<HeaderSetting>& settings) {
  json::array list;
  for (const HeaderSetting& setting : settings) {
    json::object entry;
    entry["host"] = setting.host_text();
    entry["name"] = setting.name;
    entry["value"] = setting.value;
    list.emplace_back(std::move(entry));
  }
  return list;
}

std::vector<std::string> secrets_of(std::span<const HeaderSetting> settings) {
  std::vector<std::string> names;
  for (const HeaderSetting& setting : settings) {
    auto pieces = cut_value(setting.value);
    if (!pieces) continue;
    for (const ValuePiece& piece : *pieces)
      if (piece.is_secret) names.emplace_back(piece.text);
  }
  return names;
}

}  // namespace atl::egress
