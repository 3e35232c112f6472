// What a backup says about itself: the first file in it, backup.json, and the last, SHA256SUMS.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace atl::cli::backup {

inline constexpr const char* kRecordName = "backup.json";
inline constexpr const char* kSumsName = "SHA256SUMS";
inline constexpr std::string_view kStatePrefix = "state/";
inline constexpr uint64_t kMaxRecordBytes = 64ull << 20;

struct Record {
  std::string atoll_version;
  uint32_t schema_version = 0;
  std::string created_at;  // RFC 3339
  enum class Images : unsigned char { kHeld, kLeftOut } images = Images::kHeld;
  std::vector<std::string> sandboxes;  // that ran: the backup has their rows, not what they are
};

std::string encode(const Record& record);
// kUnsupported: of a later format.
Result<Record> decode_record(std::string_view text);

// By path in the archive; as sha256sum(1) writes and checks it.
using Sums = std::map<std::string, Digest>;
std::string encode(const Sums& sums);

}  // namespace atl::cli::backup
