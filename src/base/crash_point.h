// Crash points: named places where tests/chaos has a process of Atoll die as by kill -9, to see
// that nothing is lost or left. A point is armed by a file `<program>.<name>` in a directory that
// only root can make (`<run directory>/crash`) and that must exist when the process starts; without
// it a point costs one comparison. Reaching an armed point removes the file, so it happens once.
//
// The agent cannot see that directory: the warden takes the name of a point for it, and the agent
// is born with it.
#pragma once

#include <string>
#include <string_view>

namespace atl {

// At the start of the process, before there are threads.
void watch_crash_directory(const std::string& run_directory, std::string_view program);
// The same for a process that was told the one point; empty: none.
void arm_crash_point(std::string_view name);

// The point that another program is to be told; empty if none is armed.
std::string take_armed_point(std::string_view program);

void reach_crash_point(std::string_view name);
extern bool crash_points_watched;
inline void crash_point(std::string_view name) {
  if (crash_points_watched) reach_crash_point(name);
}

}  // namespace atl
