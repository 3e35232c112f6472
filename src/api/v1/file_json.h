// Files as JSON. Names are whatever bytes a program chose: what is not UTF-8 comes as base 64 under
// another key.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "sandbox/files.h"

namespace atl::api::v1 {

// `object[key]`, or `object[key_base64]` if it is not UTF-8.
void put_bytes(boost::json::object& object, std::string_view key, std::string_view bytes);

std::string_view entry_type_name(agent::EntryType type);
std::string mode_text(uint32_t mode);
// Times beyond what a date can say are cut to it.
WallTime time_of(int64_t modified_ns);

enum class Attributes : unsigned char { kLeaveOut, kShow };
boost::json::object entry_json(const agent::FileEntry& entry,
                               Attributes attributes = Attributes::kLeaveOut);

}  // namespace atl::api::v1
