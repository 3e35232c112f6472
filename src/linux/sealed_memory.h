// memfd_create(2) with all seals: bytes that nobody can change any more, whoever holds them.
#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// At offset 0. It can be executed.
Result<Fd> make_sealed_memory(const char* name, std::string_view bytes);

// Adds all seals; nobody may have it mapped to write.
Result<void> seal_memory(int memory);

}  // namespace atl::linux
