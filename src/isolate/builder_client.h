// BuilderClient: asks atoll-builder for an image. One connection is one build; giving it up ends
// the build.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "builder/protocol.h"

namespace atl::isolate {

struct BuildOrder {
  builder::Operation operation = builder::Operation::kPack;
  uint32_t flags = 0;  // as in builder::Request
  int file = -1;       // stays the caller's
};

struct BuiltImage {
  Digest image;
  uint64_t image_bytes;
};

class BuilderClient {
 public:
  // `run_directory` holds builder.sock.
  BuilderClient(boost::asio::any_io_executor executor, std::string run_directory)
      : executor_(std::move(executor)), run_directory_(std::move(run_directory)) {}

  // `log` gets what the build prints, in pieces that break anywhere. kInvalid with reason
  // build_refused: the template is wrong; kUnavailable with reason build_failed or
  // builder_unavailable: something else is.
  Task<Result<BuiltImage>> build(BuildOrder order, std::function<void(std::string_view)> log);

 private:
  boost::asio::any_io_executor executor_;
  std::string run_directory_;
};

}  // namespace atl::isolate
