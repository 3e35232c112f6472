// The hostile programs of the selftest's image and how each is run, as the build wrote them beside
// the image: one line of tab-separated columns each, "-" for nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace atl::cli::selftest {

enum class Place : unsigned char {
  kShared,  // a sandbox that others used before
  kFresh,   // one of its own, removed afterwards
  kNone,    // no attack: a part of the set-up
};

struct Victim {
  std::string name;
  std::string id;  // of the catalogue of attacks
  std::string about;
  std::vector<std::string> users;
  // How the exec must end; empty: by itself with 0; "any": the host alone is judged.
  std::vector<std::string> verdicts;
  std::vector<std::pair<std::string, int64_t>> limits;
  std::vector<std::pair<std::string, std::string>> exec_fields;
  std::string directory;
  std::string command;  // empty: the binary of all victims
  std::chrono::milliseconds timeout{0};
  Place place = Place::kShared;
  // Walls behind which its own word proves nothing, and why.
  std::map<std::string, std::string> not_behind;
  // Walls behind which it ends otherwise: how, and why.
  struct Instead {
    std::vector<std::string> verdicts;
    std::string why;
  };
  std::map<std::string, Instead> instead;
};

Result<std::vector<Victim>> parse_victims(const std::string& text);

}  // namespace atl::cli::selftest
