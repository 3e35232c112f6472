#include "api/e2b/door.h"

#include "api/e2b/control.h"
#include "api/e2b/files.h"
#include "api/e2b/filesystem.h"
#include "api/e2b/interpreter.h"
#include "api/e2b/metrics.h"
#include "api/e2b/process.h"
#include "api/e2b/secrets.h"
#include "api/e2b/state.h"
#include "api/e2b/template_tags.h"
#include "api/e2b/templates.h"
#include "api/e2b/volumes.h"

namespace atl::api::e2b {

namespace {

constexpr char kRoomTemplate[] = "base";  // which E2B's clients start from by themselves

}  // namespace

Door::Door(Router& router, Traffic& traffic, Plane plane)
    : index_(plane.sandboxes, plane.tokens),
      search_{index_, traffic, plane.sandboxes.services().clock},
      rooms_(plane.sandboxes, kRoomTemplate) {
  plane.rooms = &rooms_;
  router.set_locate([this](const http::Request& request, const Router::Sender& sender) {
    return locate(search_, request, sender);
  });
  add_metrics_routes(router, plane);
  add_control_routes(router, plane);
  add_state_routes(router, plane);
  add_template_tag_routes(router, plane);  // before the template that could be named "tags"
  add_template_routes(router, plane, orders_);
  add_secret_routes(router, plane);
  add_volume_routes(router, plane);
  add_volume_content_routes(router, plane);
  add_process_routes(router, plane);
  add_filesystem_routes(router, plane);
  add_watch_routes(router, plane, watchers_);
  add_files_routes(router, plane);
  add_interpreter_routes(router, plane);
}

}  // namespace atl::api::e2b
