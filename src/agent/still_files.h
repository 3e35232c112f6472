// Still files: behind a kernel of its own the files of a sandbox are on its disk when that kernel
// likes. Who keeps the disk asks for a moment in which all is written and nothing changes, by a
// channel (channel_protocol.h) to what no exec is:
//
//   atolld → kOpenControl of kStillFiles
//   inside → kIsStill     all is on the disk, and whoever writes waits
//   atolld → a byte       the disk was kept
//   inside → kGoesOn      nothing was written until that byte came
//
// In place of kIsStill comes kCannot, and the end, when the kernel inside refuses to write down its
// files: the runsc of Debian 13 does.
//
// A channel that is given up lets the files go on, and so does time. Without the last word the disk
// may have been written while it was kept. Where there is no kernel of its own: EOPNOTSUPP.
#pragma once

#include <cstdint>
#include <string_view>

namespace atl::agent {

inline constexpr uint32_t kStillFiles = 0;  // in place of an exec's number
// The same, of what was launched for it (GuestPurpose::kLender): it is to be laid down, so that
// others can begin with its memory, and with the program that waits in it. It ends with that,
// and whoever connects to its keeper from then on is given that memory: one byte, with the sealed
// file beside it. A keeper that is launched with the disk of such a machine waits for that file: a
// kImprint frame of this number, before the stream of its agent begins. It gets everything ready
// and waits again, for as long as that connection lasts, for kBeginNote. What waited is in the
// hello of that agent, and says once more that it is ready.
inline constexpr uint32_t kLaidDown = UINT32_MAX;
inline constexpr std::string_view kIsStill = "still\n";
inline constexpr std::string_view kGoesOn = "goes on\n";
inline constexpr std::string_view kCannot = "cannot\n";

// What the agent of a machine sends where its RestNotes go, with the socket of the channel beside
// it: that one asks.
inline constexpr char kStillNote = 'S';
inline constexpr char kLayDownNote = 'L';
inline constexpr char kBeginNote = 'B';

}  // namespace atl::agent
