#include "api/e2b/entry_json.h"

#include "api/e2b/path.h"
#include "api/v1/file_json.h"
#include "base/clock.h"

namespace atl::api::e2b {

namespace json = boost::json;
using agent::EntryType;
using sandbox::FileEntry;

namespace {

constexpr int kMaxHops = 16;  // from link to link
constexpr uint32_t kPermissionBits = 07777;

std::string_view type_name(EntryType type) {
  switch (type) {
    case EntryType::kFile:
      return "FILE_TYPE_FILE";
    case EntryType::kDirectory:
      return "FILE_TYPE_DIRECTORY";
    default:
      return "FILE_TYPE_UNSPECIFIED";
  }
}

std::string permissions_of(const FileEntry& entry) {
  std::string text = entry.type == EntryType::kDirectory ? "d"
                     : entry.type == EntryType::kSymlink ? "L"
                                                         : "-";
  constexpr std::string_view kLetters = "rwxrwxrwx";
  for (size_t i = 0; i < kLetters.size(); ++i)
    text += (entry.mode >> (kLetters.size() - 1 - i) & 1) != 0 ? kLetters[i] : '-';
  return text;
}

// The two that every image has.
std::string owner_name(uint32_t id) {
  return id == 0 ? "root" : id == 1000 ? "user" : std::to_string(id);
}

}  // namespace

json::object metadata_json(const FileEntry& entry) {
  json::object metadata;
  for (const agent::FileAttribute& attribute : entry.attributes)
    if (attribute.name.starts_with(kMetadataPrefix) && attribute.value)
      v1::put_bytes(metadata, attribute.name.substr(kMetadataPrefix.size()), *attribute.value);
  return metadata;
}

json::object entry_json(const FileEntry& entry) {
  json::object object;
  object["name"] = sandbox::shown(name_of(entry.path));
  object["type"] = type_name(entry.type);
  object["path"] = sandbox::shown(entry.path);
  object["size"] = std::to_string(entry.size);
  object["mode"] = entry.mode & kPermissionBits;
  object["permissions"] = permissions_of(entry);
  object["owner"] = owner_name(entry.uid);
  object["group"] = owner_name(entry.gid);
  object["modifiedTime"] = to_rfc3339(v1::time_of(entry.modified_ns));
  if (entry.type == EntryType::kSymlink) object["symlinkTarget"] = sandbox::shown(entry.path);
  json::object metadata = metadata_json(entry);
  if (!metadata.empty()) object["metadata"] = std::move(metadata);
  return object;
}

http::Task<Result<json::object>> resolved_json(sandbox::Files& files, FileEntry entry) {
  json::object object = entry_json(entry);
  FileEntry at = std::move(entry);
  for (int hop = 0; at.type == EntryType::kSymlink && hop < kMaxHops; ++hop) {
    std::string target = at.target;
    if (!target.starts_with('/')) target = std::string(parent_of(at.path)) + "/" + target;
    auto path = resolve_path(target, "root");
    if (!path) co_return object;
    auto next = co_await files.stat(*path);
    if (!next) co_return object;  // it leads nowhere
    at = std::move(*next);
    object["symlinkTarget"] = sandbox::shown(at.path);
  }
  if (at.type == EntryType::kSymlink) co_return object;
  object["type"] = type_name(at.type);
  object["mode"] = at.mode & kPermissionBits;
  object["size"] = std::to_string(at.size);
  co_return object;
}

}  // namespace atl::api::e2b
