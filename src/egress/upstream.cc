#include "egress/upstream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <charconv>

#include <boost/asio/write.hpp>

#include "base/file.h"
#include "egress/request_stream.h"
#include "store/toml_section.h"

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr size_t kMaxFileBytes = 16 * 1024;
constexpr size_t kMaxCredentialsBytes = 1024;
constexpr size_t kMaxAnswerBytes = 16 * 1024;
constexpr std::string_view kEnvironment = "environment";

Result<std::string> read_owned(const std::string& path, mode_t forbidden) {
  ATOLL_TRY(Fd file, open_file(path, O_RDONLY));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + path);
  if (status.st_uid != 0 || (status.st_mode & forbidden) != 0)
    return Error(Code::kDenied, path + " must belong to root, and its permissions are too wide");
  return read_all(file.get(), kMaxFileBytes);
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

Result<std::string> read_authorization(const std::string& path) {
  ATOLL_TRY(std::string text, read_owned(path, S_IWGRP | S_IRWXO));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  bool plain = text.find(':') != text.npos && text.size() <= kMaxCredentialsBytes &&
               text.find_first_of("\r\n") == text.npos;
  if (!plain) return Error(Code::kInvalid, path + " must hold one line, name:password");
  return basic_authorization(text);
}

// Of a URL, in which what would end a part of it is written as %XX.
std::optional<std::string> undo_escapes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    if (text.size() - i < 3 || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
      return std::nullopt;
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain;
}

// As programs of this host find it.
std::string_view proxy_of_environment() {
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"})
    if (const char* url = getenv(name); url != nullptr && *url != '\0') return url;
  return "";
}

Error denied(std::string_view reason) {
  return Error(Code::kDenied, "the upstream proxy").with_reason(reason);
}

}  // namespace

Result<std::optional<Upstream>> read_upstream(const std::string& path) {
  auto text = read_owned(path, S_IWGRP | S_IWOTH);
  if (!text && text.error().system_errno() == ENOENT) return std::optional<Upstream>();
  if (!text) return std::move(text).error();
  ATOLL_TRY(store::TomlDocument document, store::TomlDocument::parse(*text, path));
  store::TomlSection top(document, document.root(), "");
  std::string proxy, credentials;
  top.require(top.text("proxy", proxy), "proxy");
  top.text("credentials", credentials);
  top.finish();
  if (proxy == kEnvironment && !credentials.empty())
    top.refuse("credentials", "is for a proxy that is named here");
  if (proxy == kEnvironment && !document.error()) return parse_proxy_url(proxy_of_environment());
  auto authority = parse_authority(proxy);
  if (!authority || !authority->port) top.refuse("proxy", "must be name:port");
  if (document.error()) return *document.error();
  Upstream upstream{.proxy = authority->to, .port = *authority->port};
  if (!credentials.empty()) {
    ATOLL_TRY(upstream.authorization, read_authorization(credentials));
  }
  return std::optional(std::move(upstream));
}

Result<std::optional<Upstream>> parse_proxy_url(std::string_view url) {
  if (url.empty()) return std::optional<Upstream>();
  // Never shown: it may hold a password.
  Error invalid(Code::kInvalid, "the proxy of the environment is not http://host:port");
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with(kScheme)) url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  size_t at = url.rfind('@');
  auto authority = parse_authority(at == url.npos ? url : url.substr(at + 1));
  if (!authority || !authority->port) return invalid;
  Upstream upstream{.proxy = authority->to, .port = *authority->port};
  if (at == url.npos) return std::optional(std::move(upstream));
  auto credentials = undo_escapes(url.substr(0, at));
  if (!credentials) return invalid;
  upstream.authorization = basic_authorization(*credentials);
  return std::optional(std::move(upstream));
}

std::string basic_authorization(std::string_view credentials) {
  return "Basic " + encode_base64(credentials);
}

std::string authority_text(const Destination& to, uint16_t port) {
  std::string host;
  if (const auto* address = std::get_if<Address>(&to))
    host = address->family() == Address::Family::kV6 ? "[" + address->string() + "]"
                                                     : address->string();
  else
    host = std::get<HostName>(to).string();
  return host + ":" + std::to_string(port);
}

Task<Result<void>> ask_upstream(asio::ip::tcp::socket& socket, const Upstream& upstream,
                                std::string authority) {
  std::string question = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
  if (!upstream.authorization.empty())
    question += "Proxy-Authorization: " + upstream.authorization + "\r\n";
  question += "\r\n";
  asio::const_buffer bytes = asio::buffer(question);
  auto [not_sent, sent] = co_await asio::async_write(socket, bytes, kToken);
  if (not_sent) co_return denied("upstream_failed");
  std::string answer;
  // Byte by byte: what follows the head is the destination's and must stay in the socket.
  while (!answer.ends_with("\r\n\r\n")) {
    char byte = 0;
    asio::mutable_buffer room(&byte, 1);
    auto [error, count] = co_await socket.async_read_some(room, kToken);
    if (error || answer.size() >= kMaxAnswerBytes) co_return denied("upstream_failed");
    answer += byte;
  }
  bool is_ok = answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200");
  if (!is_ok) co_return denied("upstream_refused");
  co_return Result<void>();
}

}  // namespace atl::egress
