#include "egress/secret_use.h"

#include <algorithm>
#include <array>

#include "base/ids.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kPlaceholderBytes = 16;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_placeholder(std::string_view text) {
  if (!text.starts_with(kPlaceholderPrefix)) return false;
  text.remove_prefix(kPlaceholderPrefix.size());
  auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 2 * kPlaceholderBytes && std::all_of(text.begin(), text.end(), is_digit);
}

Error invalid_use(const std::string& why) {
  return Error(Code::kInvalid, "network.secrets " + why)
      .with_reason("invalid_network_rule")
      .with_field("network.secrets");
}

std::string text_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

Result<SecretUse> read_use(const json::value& value) {
  SecretUse use;
  if (const json::string* name = value.if_string()) use.name.assign(name->data(), name->size());
  if (const json::object* object = value.if_object()) {
    use = {text_of(*object, "name"), text_of(*object, "placeholder")};
    if (object->size() != 2 || !is_placeholder(use.placeholder))
      return invalid_use("may hold names, or objects with name and placeholder");
  }
  if (!is_secret_name(use.name))
    return invalid_use("must name secrets: letters, digits and underscore, at most 64");
  return use;
}

}  // namespace

bool is_secret_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxSecretNameBytes &&
         !(text[0] >= '0' && text[0] <= '9') && std::all_of(text.begin(), text.end(), is_word);
}

bool is_kept_secret_name(std::string_view text) {
  auto is_allowed = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= kMaxSecretNameBytes && is_word(text[0]) &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

std::string draw_placeholder() {
  std::array<unsigned char, kPlaceholderBytes> bytes;
  fill_random(bytes);
  return std::string(kPlaceholderPrefix) + to_hex(bytes);
}

Result<std::vector<SecretUse>> read_secret_uses(const json::object& policy) {
  std::vector<SecretUse> uses;
  const json::value* value = policy.if_contains("secrets");
  if (value == nullptr) return uses;
  const json::array* list = value->if_array();
  if (list == nullptr || list->size() > kMaxSecretUses)
    return invalid_use("must be a list of at most 32 names");
  for (const json::value& one : *list) {
    ATOLL_TRY(SecretUse use, read_use(one));
    for (const SecretUse& before : uses)
      if (before.name == use.name) return invalid_use("names a secret twice");
    uses.push_back(std::move(use));
  }
  return uses;
}

json::array secret_uses_json(const std::vector<SecretUse>& uses) {
  json::array list;
  for (const SecretUse& use : uses) {
    if (use.placeholder.empty()) {
      list.emplace_back(use.name);
      continue;
    }
    json::object entry;
    entry["name"] = use.name;
    entry["placeholder"] = use.placeholder;
    list.emplace_back(std::move(entry));
  }
  return list;
}

}  // namespace atl::egress
