#include "cli/base64.h"

#include <algorithm>

#include <openssl/evp.h>

#include "http/client.h"

namespace atl::cli {

Result<std::string> decode_base64(std::string_view text) {
  Error malformed(Code::kCorrupt, "the server's answer has malformed base64");
  if (text.size() % 4 != 0 || text.size() > http::kMaxResponseBytes) return malformed;
  if (text.substr(0, text.size() - std::min<size_t>(2, text.size())).find('=') != text.npos)
    return malformed;
  std::string bytes(text.size() / 4 * 3, '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size()));
  if (length < 0) return malformed;
  // EVP_DecodeBlock() counts the padding as zero bytes.
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<size_t>(length) - padding);
  return bytes;
}

}  // namespace atl::cli
