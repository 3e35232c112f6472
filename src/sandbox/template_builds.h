// TemplateBuilds: turns packs into templates, one at a time and in turn: the builder makes the
// image, a sandbox runs what `setup` asks for, the row is stored. Whatever is not stored is
// forgotten when the process ends, and its image is collected.
//
// One thread; reading a pack is done by a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/thread_pool.hpp>

#include "isolate/builder_client.h"
#include "sandbox/sandboxes.h"
#include "sandbox/template_build.h"
#include "sandbox/template_setup.h"
#include "sandbox/templates.h"
#include "store/template_pack.h"

namespace atl::sandbox {

inline constexpr size_t kMaxKnownBuilds = 64;    // that wait, run or have ended
inline constexpr size_t kMaxWaitingBuilds = 16;  // of all tenants

struct TemplatePlaces {
  std::string images;  // the directory of images, to read
  std::string run;     // where the builder listens
};

// Whether a template whose pack has not changed is built again, to get newer packages.
enum class Freshness : unsigned char { kAsBuilt, kAnew };

struct PackOrder {
  store::TenantId tenant;
  std::string name;  // that the manifest must have; empty: any
  Freshness freshness = Freshness::kAsBuilt;
  OnSetup on_setup = {};
  // What the version is to be called; it becomes the current one if "default" is one of them, or if
  // there is none yet.
  std::vector<std::string> tags = {std::string(kDefaultTag)};
};

class TemplateBuilds {
 public:
  TemplateBuilds(Sandboxes& sandboxes, Templates& templates, store::TemplatePacks& packs,
                 TemplatePlaces places);

  // Reads the rows; at start, before anybody asks for a template.
  Task<Result<void>> load();

  // The build of that pack, which may have ended already because nothing has changed. kConflict
  // with reason template_busy: another pack of that name is being built.
  Task<Result<std::shared_ptr<TemplateBuild>>> begin(PackOrder asked, Fd pack);
  // The same of a pack that is yet to be made, by a thread that may wait for the disk.
  using MakePack = std::function<Result<Fd>()>;
  Task<Result<std::shared_ptr<TemplateBuild>>> begin(PackOrder asked, MakePack make);
  // Of a template that comes with Atoll, for every tenant; the one that is under way if there is
  // one. kNotFound: there is none of that name.
  Result<std::shared_ptr<TemplateBuild>> begin_built_in(const std::string& name,
                                                        Freshness freshness);
  // The same for somebody who wants to use it: one that has just failed is not tried again at once.
  Result<void> want_built_in(const std::string& name);
  // The newest build that a tenant may see: its own, or one for everybody.
  std::shared_ptr<TemplateBuild> find(store::TenantId tenant, std::string_view name) const;

  // All versions of the tenant's own template. kNotFound: it has none of that name.
  Task<Result<void>> remove(store::TenantId tenant, std::string name);

  // Gives tags to the version of the tenant's own template that a reference (`name`, `name:tag`,
  // `name@sha256:…`) means, and says which image it has. kNotFound: there is none; kExhausted with
  // reason too_many_tags.
  Task<Result<Digest>> tag(store::TenantId tenant, std::string reference,
                           std::vector<std::string> tags);
  // Tags that it does not have are let be; "default" stays. kNotFound: there is no such template.
  Task<Result<void>> untag(store::TenantId tenant, std::string name, std::vector<std::string> tags);

  // Removes images and packs that nothing refers to any more; none before all rows were read.
  // Images stay for a week after an operator had the files adopted.
  Task<Result<void>> collect();
  // The same, if it is long ago.
  Task<void> sweep();

  store::TemplatePacks& packs() { return packs_; }

 private:
  struct Order;
  static Task<void> run(TemplateBuilds& self, std::shared_ptr<Order> order);
  static Task<void> run_built_in(TemplateBuilds& self, std::shared_ptr<TemplateBuild> build,
                                 std::string folder, Freshness freshness);
  Result<std::shared_ptr<TemplateBuild>> enter(const PackOrder& asked, store::TemplatePack pack);
  // Takes the template that an order's grows from into it, if it does.
  Result<void> find_base(store::TenantId tenant, Order& order) const;
  Task<Result<isolate::BuiltImage>> make_image(Order& order);
  Task<Result<void>> store(const Order& order, const isolate::BuiltImage& image);
  Task<Result<void>> load_rows();
  Task<Result<void>> collect_images();
  // The version that was made of the same, if its image is there.
  const store::TemplateRow* find_built(store::TenantId tenant,
                                       const store::TemplatePack& pack) const;
  const store::TemplateRow* find_current(store::TenantId tenant,
                                         const store::TemplatePack& pack) const;
  void remember(std::shared_ptr<TemplateBuild> build);

  Sandboxes& sandboxes_;
  Templates& templates_;
  store::TemplatePacks& packs_;
  TemplatePlaces places_;
  isolate::BuilderClient client_;
  boost::asio::thread_pool reader_;
  std::deque<std::shared_ptr<TemplateBuild>> known_;
  bool loaded_ = false;
  size_t under_way_ = 0;  // also those that wait
  bool busy_ = false;
  SteadyTime collected_at_{};
  Event turn_;
};

}  // namespace atl::sandbox
