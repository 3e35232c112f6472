#include "http/head.h"

#include <time.h>

#include <algorithm>
#include <charconv>

#include <boost/beast/http/status.hpp>

namespace atl::http {
namespace {

constexpr int kSwitchingProtocols = 101;

bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_ours(std::string_view name) {
  for (std::string_view ours :
       {"content-length", "transfer-encoding", "connection", "keep-alive", "date"}) {
    if (equal_ignoring_case(name, ours)) return true;
  }
  return false;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

Result<void> append_fields(std::string& out, const Headers& headers) {
  for (const auto& [name, value] : headers.fields()) {
    if (is_ours(name)) continue;
    if (!is_token(name)) return Error(Code::kInvalid, "format header: bad field name");
    if (!is_field_value(value)) {
      return Error(Code::kInvalid, "format header: bad value of field " + name);
    }
    append_field(out, name, value);
  }
  return {};
}

void append_date(std::string& out) {
  // strftime costs 0.5 µs, and the text changes once a second. Trivial types: nothing to construct.
  thread_local time_t second = 0;
  thread_local char text[32] = {};
  time_t now = time(nullptr);
  if (now != second) {
    tm parts;
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    second = now;
  }
  append_field(out, "Date", text);
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
  });
}

Result<std::string> format_response_head(const ResponseHead& head, const Headers& headers) {
  if (head.status < 100 || head.status > 999) {
    return Error(Code::kInvalid, "format header: bad status " + std::to_string(head.status));
  }
  std::string out;
  out.reserve(256);
  auto status = boost::beast::http::int_to_status(static_cast<unsigned>(head.status));
  out.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ");
  out.append(boost::beast::http::obsolete_reason(status)).append("\r\n");
  append_date(out);
  ATOLL_TRY_VOID(append_fields(out, headers));
  if (head.framing == Framing::kLength) {
    append_field(out, "Content-Length", std::to_string(head.body_bytes));
  }
  if (head.framing == Framing::kChunked) append_field(out, "Transfer-Encoding", "chunked");
  if (head.status == kSwitchingProtocols)
    append_field(out, "Connection", "upgrade");
  else if (head.after == After::kClose)
    append_field(out, "Connection", "close");
  out.append("\r\n");
  return out;
}

Result<std::string> format_request_head(const RequestHead& head, const Headers& headers) {
  bool printable = std::all_of(head.target.begin(), head.target.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (head.target.empty() || !printable) return Error(Code::kInvalid, "request: bad target");
  if (head.method == Method::kOther) return Error(Code::kInvalid, "request: unknown method");
  if (!is_field_value(head.host)) return Error(Code::kInvalid, "request: bad host");
  std::string out;
  out.append(method_name(head.method)).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  append_field(out, "Host", head.host);
  ATOLL_TRY_VOID(append_fields(out, headers));
  bool may_have_body = head.method != Method::kGet && head.method != Method::kHead;
  if (head.framing == Framing::kChunked) {
    append_field(out, "Transfer-Encoding", "chunked");
  } else if (may_have_body || head.body_bytes > 0) {
    append_field(out, "Content-Length", std::to_string(head.body_bytes));
  }
  if (!head.connection.empty()) append_field(out, "Connection", head.connection);
  out.append("\r\n");
  return out;
}

std::optional<uint64_t> content_length(const Headers& headers) {
  if (headers.count("content-length") != 1) return std::nullopt;
  std::string_view text = *headers.find("content-length");
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace atl::http
