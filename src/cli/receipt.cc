#include "cli/receipt.h"

#include <boost/json/parse.hpp>

#include "cli/base64.h"
#include "store/signature.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

Error invalid(std::string why) { return Error(Code::kInvalid, "not a good receipt: " + why); }

Result<json::object> parse(std::string_view text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return invalid("it is not a JSON object");
  return std::move(value).as_object();
}

Result<std::string> decoded(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string())
    return invalid("\"" + std::string(name) + "\" is missing");
  auto bytes = decode_base64(std::string(value->as_string()));
  if (!bytes) return invalid("\"" + std::string(name) + "\" is not base 64");
  return bytes;
}

}  // namespace

Result<json::object> verify_receipt(std::string_view text, std::string_view public_key) {
  ATOLL_TRY(json::object outer, parse(text));
  ATOLL_TRY(std::string bytes, decoded(outer, "signed"));
  ATOLL_TRY(std::string signature, decoded(outer, "signature"));
  while (public_key.ends_with('\n')) public_key.remove_suffix(1);
  auto key = decode_base64(std::string(public_key));
  if (!key) return Error(Code::kInvalid, "the public key is not base 64");
  if (!store::is_signed_by(*key, bytes, signature))
    return invalid("the signature is not by this key");
  ATOLL_TRY(json::object receipt, parse(bytes));
  // What a reader sees must be what was signed.
  const json::value* readable = outer.if_contains("receipt");
  if (readable == nullptr || *readable != json::value(receipt))
    return invalid("its readable part differs from what was signed");
  return receipt;
}

}  // namespace atl::cli
