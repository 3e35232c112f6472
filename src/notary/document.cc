#include "notary/document.h"

#include <algorithm>
#include <vector>

#include <openssl/evp.h>

#include "base/ids.h"

namespace atl::notary {
namespace {

constexpr std::string_view kBlob = "blob:";
constexpr size_t kMaxColumns = 4;

Error malformed() { return Error(Code::kCorrupt, "malformed facts"); }

Result<std::vector<std::string_view>> columns_of(std::string_view line) {
  bool printable = std::all_of(line.begin(), line.end(),
                               [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
  std::vector<std::string_view> columns;
  while (true) {
    size_t tab = line.find('\t');
    columns.push_back(line.substr(0, tab));
    if (tab == line.npos) break;
    line.remove_prefix(tab + 1);
  }
  if (!printable || columns.size() < 2 || columns.size() > kMaxColumns) return malformed();
  return columns;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

Result<std::string> digest_of(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    size_t high = kDigits.find(digits[i]);
    size_t low = kDigits.find(digits[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return malformed();
    bytes += static_cast<char>(high * 16 + low);
  }
  if (digits.size() % 2 != 0) return malformed();
  std::array<unsigned char, Digest::kBytes> digest;
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
    return Error(Code::kSystem, "OpenSSL: SHA-256");
  return "sha256:" + to_hex(digest);
}

Result<std::string> value_of(std::string_view text) {
  if (text == "-") return std::string("null");
  if (!text.starts_with(kBlob)) return json_text(text);
  ATOLL_TRY(std::string digest, digest_of(text.substr(kBlob.size())));
  return json_text(digest);
}

}  // namespace

Result<std::string> make_document(std::string_view facts) {
  std::string head = "{\"version\":1";
  std::string list;
  while (!facts.empty()) {
    size_t end = facts.find('\n');
    if (end == facts.npos) return malformed();
    ATOLL_TRY(std::vector<std::string_view> columns, columns_of(facts.substr(0, end)));
    facts.remove_prefix(end + 1);
    if (columns[0] != "fact") {
      head += "," + json_text(columns[0]) + ":" + json_text(columns[1]);
      continue;
    }
    if (columns.size() != kMaxColumns) return malformed();
    ATOLL_TRY(std::string outside, value_of(columns[2]));
    ATOLL_TRY(std::string inside, value_of(columns[3]));
    list += (list.empty() ? "" : ",") + ("{\"name\":" + json_text(columns[1])) +
            ",\"outside\":" + outside + ",\"inside\":" + inside + "}";
  }
  return head + ",\"facts\":[" + list + "]}";
}

}  // namespace atl::notary
