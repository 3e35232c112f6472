#include "builder/http_get.h"

#include <chrono>
#include <curl/curl.h>
#include <memory>
#include <optional>
#include <thread>

namespace atl::builder {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kConnectSeconds = 30;
// A transfer that is slower than this for so long has stalled.
constexpr long kLeastBytesPerSecond = 1024;
constexpr long kStallSeconds = 60;
// A registry that does not answer, or says that it cannot now, is asked so often; the pause grows.
constexpr int kMaxAttempts = 3;
constexpr std::chrono::seconds kFirstPause{1};

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

struct Transfer {
  CURL* handle;
  const TakePart& take;
  std::string challenge = "";
  std::optional<Error> failure = {};
  bool given = false;  // some of the body, which cannot be taken back

  long status() const {
    long found = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &found);
    return found;
  }
  static size_t on_body(char* bytes, size_t, size_t count, void* data) {
    auto* self = static_cast<Transfer*>(data);
    if (self->status() != 200) return count;
    self->given = true;
    auto taken = self->take({bytes, count});
    if (taken) return count;
    self->failure = taken.error();
    return 0;
  }
  static size_t on_header(char* bytes, size_t, size_t count, void* data) {
    constexpr std::string_view kName = "www-authenticate:";
    std::string line(bytes, count);
    if (lower(line).starts_with(kName))
      static_cast<Transfer*>(data)->challenge = line.substr(kName.size());
    return count;
  }
};

void set_options(CURL* handle, const HttpGet& request, Transfer& transfer) {
  bool plain = request.url.starts_with("http://");
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
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
}

bool is_temporary(CURLcode code, const Transfer& transfer) {
  if (transfer.given || transfer.failure) return false;
  if (code != CURLE_OK) return true;
  return transfer.status() == 429 || transfer.status() >= 500;
}

CURLcode perform(Transfer& transfer) {
  auto pause = kFirstPause;
  for (int attempt = 1;; attempt++, pause *= 2) {
    CURLcode code = curl_easy_perform(transfer.handle);
    if (attempt == kMaxAttempts || !is_temporary(code, transfer)) return code;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

Result<HttpAnswer> http_get(const HttpGet& request, const TakePart& take) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return Error(Code::kSystem, "libcurl does not start");
  std::unique_ptr<CURL, FreeHandle> handle(curl_easy_init());
  if (!handle) return Error(Code::kSystem, "libcurl does not start");
  std::unique_ptr<curl_slist, FreeList> headers;
  auto add = [&](const std::string& line) {
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
  };
  for (const std::string& line : request.headers) add(line);
  if (!request.authorization.empty()) add("Authorization: " + request.authorization);
  Transfer transfer{.handle = handle.get(), .take = take};
  set_options(handle.get(), request, transfer);
  curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
  CURLcode code = perform(transfer);
  if (transfer.failure) return std::move(*transfer.failure);
  if (code != CURLE_OK)
    return Error(Code::kUnavailable, request.url + ": " + curl_easy_strerror(code));
  return HttpAnswer{.status = transfer.status(), .challenge = std::move(transfer.challenge)};
}

std::string percent_encode(std::string_view text) {
  std::unique_ptr<char, void (*)(void*)> made(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return made ? made.get() : "";
}

}  // namespace atl::builder
