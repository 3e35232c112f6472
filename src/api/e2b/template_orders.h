// TemplateOrders: the templates that E2B's clients are having built, and where they may send files
// to. A client announces a template, sends what its steps copy, begins the build and asks how far
// it is, each with the id that the first call gave. Forgotten when the process ends, as builds are.
//
// One thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "api/e2b/build_definition.h"
#include "base/clock.h"
#include "sandbox/template_build.h"

namespace atl::api::e2b {

inline constexpr size_t kMaxOrders = 64;  // of all tenants; each may hold the log of a build
inline constexpr size_t kMaxLinks = 1024;

struct TemplateOrder {
  store::TenantId tenant;
  std::string id;  // a UUID
  AnnouncedTemplate announced;
  std::shared_ptr<sandbox::TemplateBuild> build;  // null: not begun
};

// Whoever has the link may send this one file in the tenant's name.
struct UploadLink {
  std::string token;
  store::TenantId tenant;
  Digest name;
  SteadyTime expires;
};

class TemplateOrders {
 public:
  std::shared_ptr<TemplateOrder> add(store::TenantId tenant, AnnouncedTemplate announced);
  // Null: the tenant has none such.
  std::shared_ptr<TemplateOrder> find(store::TenantId tenant, std::string_view name,
                                      std::string_view id) const;
  // Whether the tenant has announced a template of that name.
  bool knows(store::TenantId tenant, std::string_view name) const;

  std::string make_link(store::TenantId tenant, const Digest& name, SteadyTime now);
  std::optional<UploadLink> find_link(std::string_view token, SteadyTime now) const;

 private:
  std::deque<std::shared_ptr<TemplateOrder>> orders_;
  std::deque<UploadLink> links_;
};

}  // namespace atl::api::e2b
