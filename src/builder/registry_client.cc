#include "builder/registry_client.h"

#include <unistd.h>

#include <curl/curl.h>
#include <optional>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/file.h"

namespace atl::builder {

namespace json = boost::json;

namespace {

constexpr long kMaxRedirects = 5;
constexpr long kConnectSeconds = 30;
// A transfer that is slower than this for so long has stalled.
constexpr long kLeastBytesPerSecond = 1024;
constexpr long kStallSeconds = 60;
constexpr size_t kMaxTokenBytes = 64 * 1024;
constexpr size_t kMaxCredentialBytes = 1 << 20;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

bool is_loopback(const std::string& host) {
  std::string name = host.substr(0, host.rfind(':'));
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string escape(std::string_view text) {
  std::unique_ptr<char, void (*)(void*)> made(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return made ? made.get() : "";
}

}  // namespace

struct RegistryClient::Curl {
  CURL* handle = curl_easy_init();
  ~Curl() { curl_easy_cleanup(handle); }
};

struct RegistryClient::Transfer {
  std::string url;
  std::vector<std::string> headers;
  std::string authorization;  // taken off by curl when it is sent to another host
  const Take& take;
  CURL* handle = nullptr;
  long status = 0;
  std::string challenge;
  std::optional<Error> failure;

  static size_t on_body(char* bytes, size_t, size_t count, void* data) {
    auto* self = static_cast<Transfer*>(data);
    curl_easy_getinfo(self->handle, CURLINFO_RESPONSE_CODE, &self->status);
    if (self->status != 200) return count;
    auto taken = self->take({bytes, count});
    if (taken) return count;
    self->failure = taken.error();
    return 0;
  }
  static size_t on_header(char* bytes, size_t, size_t count, void* data) {
    auto* self = static_cast<Transfer*>(data);
    std::string line(bytes, count);
    constexpr std::string_view kName = "www-authenticate:";
    if (lower(line).starts_with(kName)) self->challenge = line.substr(kName.size());
    return count;
  }
};

RegistryClient::RegistryClient() : curl_(std::make_unique<Curl>()) {}
RegistryClient::RegistryClient(RegistryClient&&) noexcept = default;
RegistryClient::~RegistryClient() = default;

Result<RegistryClient> RegistryClient::create(const ImageReference& reference, int credentials) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return Error(Code::kSystem, "libcurl does not start");
  RegistryClient client;
  if (client.curl_->handle == nullptr) return Error(Code::kSystem, "libcurl does not start");
  client.repository_ = reference.repository;
  client.base_ = std::string(is_loopback(reference.host) ? "http" : "https") + "://" +
                 reference.host + "/v2/" + reference.repository;
  if (credentials >= 0) {
    ATOLL_TRY(std::string text, read_all(credentials, kMaxCredentialBytes));
    ATOLL_TRY(client.basic_, find_credentials(text, reference.host));
  }
  return client;
}

Result<void> RegistryClient::perform(Transfer& transfer) {
  CURL* handle = curl_->handle;
  curl_easy_reset(handle);
  transfer.handle = handle;
  std::unique_ptr<curl_slist, FreeList> headers;
  auto add = [&](const std::string& line) {
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
  };
  for (const std::string& line : transfer.headers) add(line);
  if (!transfer.authorization.empty()) add("Authorization: " + transfer.authorization);
  curl_easy_setopt(handle, CURLOPT_URL, transfer.url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  bool plain = transfer.url.starts_with("http://");
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, plain ? "http,https" : "https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, plain ? "http,https" : "https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "atoll-builder/" ATOLL_VERSION);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Transfer::on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, Transfer::on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  CURLcode code = curl_easy_perform(handle);
  if (transfer.failure) return std::move(*transfer.failure);
  if (code != CURLE_OK)
    return Error(Code::kUnavailable, transfer.url + ": " + curl_easy_strerror(code));
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &transfer.status);
  return {};
}

Result<void> RegistryClient::get(const std::string& path, const std::vector<std::string>& headers,
                                 const Take& take) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    Transfer transfer{.url = base_ + path,
                      .headers = headers,
                      .authorization = authorization_,
                      .take = take,
                      .challenge = {},
                      .failure = {}};
    ATOLL_TRY_VOID(perform(transfer));
    if (transfer.status == 200) return {};
    if (transfer.status == 401 && attempt == 0) {
      ATOLL_TRY_VOID(sign_in(transfer.challenge));
      continue;
    }
    if (transfer.status == 401 || transfer.status == 403)
      return Error(Code::kInvalid, "the registry does not let us read " + transfer.url);
    if (transfer.status == 404) return Error(Code::kInvalid, "the registry has no " + transfer.url);
    return Error(Code::kUnavailable, transfer.url + " answered " + std::to_string(transfer.status));
  }
  return Error(Code::kInvalid, "the registry does not let us read " + base_);
}

Result<void> RegistryClient::sign_in(const std::string& challenge) {
  std::string scheme = lower(challenge.substr(challenge.find_first_not_of(" \t")));
  if (scheme.starts_with("basic")) {
    if (basic_.empty()) return Error(Code::kInvalid, "the registry wants a user and a password");
    authorization_ = "Basic " + basic_;
    return {};
  }
  std::string realm = challenge_field(challenge, "realm");
  bool safe = realm.starts_with("https://") ||
              (base_.starts_with("http://") && realm.starts_with("http://"));
  if (!scheme.starts_with("bearer") || !safe)
    return Error(Code::kInvalid, "the registry wants a sign-in that we do not know");
  std::string url = realm + (realm.find('?') == realm.npos ? "?" : "&") +
                    "service=" + escape(challenge_field(challenge, "service")) +
                    "&scope=" + escape("repository:" + repository_ + ":pull");
  std::string text;
  Take take = [&](std::string_view part) -> Result<void> {
    if (text.size() + part.size() > kMaxTokenBytes)
      return Error(Code::kInvalid, "the registry's token is too large");
    text += part;
    return {};
  };
  Transfer transfer{.url = url,
                    .headers = {},
                    .authorization = basic_.empty() ? "" : "Basic " + basic_,
                    .take = take,
                    .challenge = {},
                    .failure = {}};
  ATOLL_TRY_VOID(perform(transfer));
  json::error_code error;
  json::value answer = transfer.status == 200 ? json::parse(text, error) : json::value();
  const json::object* object = error ? nullptr : answer.if_object();
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
