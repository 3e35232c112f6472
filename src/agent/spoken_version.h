// The version of the stream that this agent speaks. In a file of its own, so that tests can link an
// agent of an older or newer version out of the same objects.
#pragma once

#include <cstdint>

namespace atl::agent {

uint16_t spoken_version();

}  // namespace atl::agent
