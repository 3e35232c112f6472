// What atolld and the agent say of imprints (imprint.h), since version 2:
//
//   atolld → kOpenImprint  opens a channel (channel_protocol.h) whose bytes are the imprint of an
//   exec
//                          that waits at its control socket and ends with this; or instead, in
//                          words, why there can be none
//   atolld → kImprint      the exec of this number begins from the imprint whose file comes beside
//   the
//                          frame as a descriptor, if its kStart is the next and has it controlled.
//                          Only where the stream is a socket of one host
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::agent {

std::string encode_open_imprint(uint32_t channel, uint32_t exec);
std::string encode_imprint(uint32_t exec);

Result<uint32_t> decode_open_imprint(std::string_view payload);

}  // namespace atl::agent
