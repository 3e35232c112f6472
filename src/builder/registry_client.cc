#include "builder/registry_client.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/file.h"

namespace atl::builder {

namespace json = boost::json;

namespace {

constexpr size_t kMaxTokenBytes = 64 * 1024;
constexpr size_t kMaxCredentialBytes = 1 << 20;

bool is_loopback(const std::string& host) {
  std::string name = host.substr(0, host.rfind(':'));
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

Error refused(const std::string& what) {
  return Error(Code::kInvalid, "the registry does not let us read " + what);
}

}  // namespace

Result<RegistryClient> RegistryClient::create(const ImageReference& reference, int credentials) {
  RegistryClient client;
  client.repository_ = reference.repository;
  client.base_ = std::string(is_loopback(reference.host) ? "http" : "https") + "://" +
                 reference.host + "/v2/" + reference.repository;
  if (credentials >= 0) {
    ATOLL_TRY(std::string text, read_all(credentials, kMaxCredentialBytes));
    ATOLL_TRY(client.basic_, find_credentials(text, reference.host));
  }
  return client;
}

Result<void> RegistryClient::get(const std::string& path, const std::vector<std::string>& headers,
                                 const TakePart& take) {
  HttpGet request{.url = base_ + path, .headers = headers, .authorization = authorization_};
  ATOLL_TRY(HttpAnswer answer, http_get(request, take));
  if (answer.status == 401) {
    ATOLL_TRY_VOID(sign_in(answer.challenge));
    request.authorization = authorization_;
    ATOLL_TRY(answer, http_get(request, take));
  }
  if (answer.status == 200) return {};
  if (answer.status == 401 || answer.status == 403) return refused(request.url);
  if (answer.status == 404) return Error(Code::kInvalid, "the registry has no " + request.url);
  return Error(Code::kUnavailable, request.url + " answered " + std::to_string(answer.status));
}

Result<void> RegistryClient::sign_in(const std::string& challenge) {
  size_t begin = std::min(challenge.find_first_not_of(" \t"), challenge.size());
  std::string scheme = challenge.substr(begin, 6);
  if (scheme.starts_with("Basic") || scheme.starts_with("basic")) {
    if (basic_.empty()) return refused(base_ + " without a user and a password");
    authorization_ = "Basic " + basic_;
    return {};
  }
  std::string realm = challenge_field(challenge, "realm");
  bool safe = realm.starts_with("https://") ||
              (base_.starts_with("http://") && realm.starts_with("http://"));
  if ((scheme != "Bearer" && scheme != "bearer") || !safe)
    return Error(Code::kInvalid, "the registry wants a sign-in that we do not know");
  return fetch_token(realm + (realm.find('?') == realm.npos ? "?" : "&") +
                     "service=" + percent_encode(challenge_field(challenge, "service")) +
                     "&scope=" + percent_encode("repository:" + repository_ + ":pull"));
}

Result<void> RegistryClient::fetch_token(const std::string& url) {
  std::string text;
  auto take = [&](std::string_view part) -> Result<void> {
    if (text.size() + part.size() > kMaxTokenBytes)
      return Error(Code::kInvalid, "the registry's token is too large");
    text += part;
    return {};
  };
  ATOLL_TRY(HttpAnswer answer,
            http_get({.url = url, .authorization = basic_.empty() ? "" : "Basic " + basic_}, take));
  if (answer.status != 200) return refused(base_);
  json::error_code error;
  json::value document = json::parse(text, error);
  const json::object* object = error ? nullptr : document.if_object();
  for (const char* key : {"token", "access_token"}) {
    const json::value* token = object == nullptr ? nullptr : object->if_contains(key);
    if (token == nullptr || !token->is_string()) continue;
    std::string word(token->get_string());
    if (word.find_first_of("\r\n") != word.npos) break;
    authorization_ = "Bearer " + word;
    return {};
  }
  return Error(Code::kInvalid, "the registry's sign-in gave no token");
}

std::string challenge_field(std::string_view challenge, std::string_view name) {
  std::string wanted = std::string(name) + "=\"";
  size_t begin = challenge.find(wanted);
  if (begin == challenge.npos) return "";
  begin += wanted.size();
  size_t end = challenge.find('"', begin);
  return end == challenge.npos ? "" : std::string(challenge.substr(begin, end - begin));
}

Result<std::string> find_credentials(std::string_view text, const std::string& host) {
  json::error_code error;
  json::value document = json::parse(text, error);
  if (error || !document.is_object())
    return Error(Code::kInvalid, "the file of registry credentials is not a JSON object");
  const json::value* hosts = document.get_object().if_contains("auths");
  if (hosts == nullptr || !hosts->is_object()) return std::string();
  const json::value* found = hosts->get_object().if_contains(host);
  if (found == nullptr || !found->is_object()) return std::string();
  const json::value* basic = found->get_object().if_contains("auth");
  if (basic == nullptr || !basic->is_string()) return std::string();
  return std::string(basic->get_string());
}

}  // namespace atl::builder
