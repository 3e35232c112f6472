// What a machine that begins with the memory of another is told before anything else: who it is
// now, what time it is, and random bytes that no other has.
#pragma once

#include <array>
#include <cstdint>

#include "agent/birth_record.h"
#include "base/result.h"

namespace atl::microvm {

struct Rebirth {
  std::array<unsigned char, agent::kNonceBytes> nonce;
  std::array<unsigned char, 64> entropy;
  int64_t time_ns;
};
static_assert(sizeof(Rebirth) == 88);

// The keeper's: of now, with new random bytes.
Result<Rebirth> make_rebirth(const std::array<unsigned char, agent::kNonceBytes>& nonce);

// The guest's: the agent behind `notes` has its new nonce when this returns.
Result<void> tell_agent(const Rebirth& rebirth, int notes);

// A machine's: its kernel's random numbers begin anew, its clock is right, and the agent behind
// `notes` has its new nonce, when this returns. After an error the machine must end.
Result<void> be_reborn(const Rebirth& rebirth, int notes);

}  // namespace atl::microvm
