#include "cli/backup/record.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "cli/readable.h"

namespace atl::cli::backup {
namespace {

namespace json = boost::json;

constexpr uint64_t kFormat = 1;

}  // namespace

std::string encode(const Record& record) {
  json::object object = {
      {"format", kFormat},
      {"atoll_version", record.atoll_version},
      {"schema_version", record.schema_version},
      {"created_at", record.created_at},
      {"has_images", record.images == Record::Images::kHeld},
      {"sandboxes_that_ran", json::array(record.sandboxes.begin(), record.sandboxes.end())}};
  return json::serialize(object) + "\n";
}

Result<Record> decode_record(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kCorrupt, "its backup.json is not JSON");
  const json::object& object = value.as_object();
  uint64_t format = number_field(object, "format");
  if (format > kFormat)
    return Error(Code::kUnsupported, "it has format " + std::to_string(format) +
                                         ", this atoll knows " + std::to_string(kFormat) +
                                         "\n  remedy: restore it with the newer version");
  uint64_t schema = number_field(object, "schema_version");
  const json::value* images = object.if_contains("has_images");
  const json::value* sandboxes = object.if_contains("sandboxes_that_ran");
  if (format != kFormat || schema == 0 || schema > UINT32_MAX || !images || !images->is_bool() ||
      !sandboxes || !sandboxes->is_array())
    return Error(Code::kCorrupt, "its backup.json lacks what it must have");
  Record record{.atoll_version = text_field(object, "atoll_version"),
                .schema_version = static_cast<uint32_t>(schema),
                .created_at = text_field(object, "created_at"),
                .images = images->as_bool() ? Record::Images::kHeld : Record::Images::kLeftOut,
                .sandboxes = {}};
  for (const json::value& sandbox : sandboxes->as_array())
    if (sandbox.is_string()) record.sandboxes.emplace_back(sandbox.as_string());
  return record;
}

std::string encode(const Sums& sums) {
  std::string text;
  for (const auto& [path, digest] : sums) text += digest.string() + "  " + path + "\n";
  return text;
}

}  // namespace atl::cli::backup
