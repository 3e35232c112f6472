// Errors as E2B's clients understand them. Each kind of route has its own shape; a sandbox that is
// away is the same for all: 502 {"code","message"}.
#pragma once

#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::api::e2b {

// {"code": 404, "message": "…"}: clients look at the number in the body.
http::Response control_failure(const Error& error, std::string_view request_id);
// {"code": "not_found", "message": "…"}, of a call with one answer (Connect protocol).
http::Response rpc_failure(const Error& error, std::string_view request_id);
// The same as the end of a stream, with status 200: with any other, clients lose the text.
http::Response stream_failure(const Error& error, std::string_view request_id);
// The message alone, of the code interpreter.
http::Response text_failure(const Error& error, std::string_view request_id);

// {"code": "not_found", "message": "…"} as text.
std::string rpc_error_text(const Error& error);

}  // namespace atl::api::e2b
