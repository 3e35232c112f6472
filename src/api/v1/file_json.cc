#include "api/v1/file_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/base64.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace atl::api::v1 {

namespace json = boost::json;

namespace {

constexpr int64_t kMaxSeconds = 253'402'300'799;  // the end of the year 9999

json::object attributes_json(const agent::FileEntry& entry) {
  json::object attributes;
  for (const agent::FileAttribute& attribute : entry.attributes)
    if (attribute.value && is_utf8(attribute.name))
      put_bytes(attributes, attribute.name, *attribute.value);
  return attributes;
}

}  // namespace

void put_bytes(json::object& object, std::string_view key, std::string_view bytes) {
  if (is_utf8(bytes)) {
    object[key] = bytes;
  } else {
    object[std::string(key) + "_base64"] = to_base64(bytes);
  }
}

std::string_view entry_type_name(agent::EntryType type) {
  switch (type) {
    case agent::EntryType::kFile:
      return "file";
    case agent::EntryType::kDirectory:
      return "directory";
    case agent::EntryType::kSymlink:
      return "symlink";
    case agent::EntryType::kOther:
      return "other";
  }
  return "other";
}

std::string mode_text(uint32_t mode) { return fmt::format("{:04o}", mode); }

WallTime time_of(int64_t modified_ns) {
  int64_t seconds = std::clamp<int64_t>(modified_ns / 1'000'000'000, 0, kMaxSeconds);
  int64_t rest_ns = modified_ns > 0 ? modified_ns % 1'000'000'000 : 0;
  auto since = std::chrono::seconds(seconds) + std::chrono::nanoseconds(rest_ns);
  return WallTime(std::chrono::duration_cast<WallTime::duration>(since));
}

json::object entry_json(const agent::FileEntry& entry, Attributes attributes) {
  json::object object;
  std::string_view path = entry.path;
  put_bytes(object, "path", path);
  put_bytes(object, "name", path == "/" ? path : path.substr(path.rfind('/') + 1));
  object["type"] = entry_type_name(entry.type);
  object["size"] = entry.size;
  object["mode"] = mode_text(entry.mode);
  object["uid"] = entry.uid;
  object["gid"] = entry.gid;
  object["modified_at"] = to_rfc3339(time_of(entry.modified_ns));
  if (entry.type == agent::EntryType::kSymlink) put_bytes(object, "target", entry.target);
  if (attributes == Attributes::kShow) object["xattrs"] = attributes_json(entry);
  return object;
}

}  // namespace atl::api::v1
