// What E2B's clients do inside one sandbox comes to the one port of this server and is told apart
// by the fields E2b-Sandbox-Id and E2b-Sandbox-Port, by the host "<port>-<id>.<domain>", or, of a
// file, by the token or signature alone. Here such requests are found and their senders admitted.
//
//   /e2b/{id}/49983/…  processes and files ("envd")      /e2b/{id}/49999/…  the code interpreter
//
// Any other port is that of a program inside: /v1/sandboxes/{id}/ports/{port}/….
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/e2b/token_index.h"
#include "api/port_host.h"
#include "api/router.h"
#include "sandbox/meters.h"
#include "sandbox/port_tokens.h"
#include "sandbox/sandboxes.h"
#include "sandbox/snapshots.h"
#include "sandbox/tenants.h"
#include "sandbox/volume_rooms.h"
#include "store/uploads.h"

namespace atl::sandbox {
class TemplateBuilds;
}

namespace atl::api::e2b {

inline constexpr char kEnvd[] = "/e2b/{id}/49983";
inline constexpr char kInterpreter[] = "/e2b/{id}/49999";

// What all routes inside a sandbox stand on. Outlives the router.
struct Plane {
  sandbox::Sandboxes& sandboxes;
  sandbox::Snapshots& snapshots;
  const sandbox::PortTokens& tokens;
  sandbox::Tenants& tenants;
  sandbox::Meters& meters;
  sandbox::TemplateBuilds& builds;
  const store::Uploads& uploads;
  // "<port>-<id>.<domain>" reaches a port, as getHost() says; empty: the host that was asked.
  std::string_view domain = "";
  sandbox::VolumeRooms* rooms = nullptr;  // the door's
};

// What a file is found by that names no sandbox.
struct Search {
  TokenIndex& index;
  Traffic& traffic;  // where those who search in vain are counted
  const Clock& clock;
};
// The route that a request means; nothing if it is none of E2B's.
std::optional<Router::Located> locate(const Search& search, const http::Request& request,
                                      const Router::Sender& sender);

// kAccess: the token that the sandbox was created with, or for files a signature made with it.
// kTraffic: that one, or the one for its ports. kNothing: everybody who knows the id. Who shows a
// token is judged by that alone; a link that is over admits nobody, whatever is shown beside it.
enum class Needs : unsigned char { kAccess, kTraffic, kNothing };
Route::Admission admit(const Plane& plane, Needs needs, const http::Request& request,
                       const std::vector<std::string>& parameters);

// The sandbox that the first parameter names. One that does not run, or not any more, is an error
// of reason sandbox_away: the clients know by its status, 502, that nobody is there.
Result<std::shared_ptr<sandbox::Sandbox>> running_sandbox(const Call& call, const Plane& plane);
// The same on the control plane, where it is not found; a paused one is.
Result<std::shared_ptr<sandbox::Sandbox>> named_sandbox(const Call& call, const Plane& plane);
// A paused one is away too, unless whoever uses it lets it go on.
bool is_away(const sandbox::Sandbox& sandbox);
// It will never run again.
bool is_over(const sandbox::Sandbox& sandbox);

// "<id>" or "<id>-<anything>", as E2B's clients may write it.
std::optional<SandboxId> parse_sandbox_id(std::string_view text);

}  // namespace atl::api::e2b
