// The command line of atoll-builder, written by the supervisor or, for one image, by hand.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::builder {

inline constexpr std::string_view kUsage =
    "usage: atoll-builder --state-dir DIR --run-dir DIR --client-uid UID\n"
    "       atoll-builder --state-dir DIR --out DIR <PACK.tar\n"
    "         builds one pack and leaves image.erofs, digest and template.toml in OUT/NAME";

struct Options {
  std::string state_dir;
  std::string run_dir;
  std::string out_dir;       // not empty: build what comes on standard input and end
  std::string npm_registry;  // empty: as /etc/npmrc says, or the public one
  std::string go_proxy;      // as GOPROXY; empty: the public one
  uid_t client_uid = 0;
};

Result<Options> parse_options(std::span<char* const> arguments);

}  // namespace atl::builder
