// The input of processes: SendInput, StreamInput and CloseStdin of process.Process.
#pragma once

#include <memory>

#include <boost/json/object.hpp>

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

// The live process that the message of a call names.
struct ProcessTarget {
  std::shared_ptr<sandbox::Sandbox> sandbox;
  std::shared_ptr<sandbox::Exec> exec;
  boost::json::object message;
};
http::Task<Result<ProcessTarget>> target_of(Call& call, Plane plane);

void add_process_input_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
