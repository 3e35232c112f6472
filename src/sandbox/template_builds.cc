#include "sandbox/template_builds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "async/pool_job.h"
#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "store/sha256.h"
#include "store/template_sections.h"

namespace atl::sandbox {

namespace asio = boost::asio;

namespace {

// `atoll template add` puts an image in its place before it names it.
constexpr time_t kCollectAgeSeconds = 600;
constexpr std::chrono::minutes kCollectPause{10};
// Before a built-in template that could not be built is tried again for somebody who wants it.
constexpr std::chrono::seconds kRetryPause{30};

}  // namespace

struct TemplateBuilds::Order {
  std::shared_ptr<TemplateBuild> build;
  store::TemplatePack pack;
  std::optional<isolate::BuiltImage> base = {};  // of the template that this one grows from
  OnSetup on_setup = {};
  std::vector<std::string> tags = {std::string(kDefaultTag)};
  std::optional<isolate::BuiltImage> built = {};  // of the same before, which is to be used again
};

TemplateBuilds::TemplateBuilds(Sandboxes& sandboxes, Templates& templates,
                               store::TemplatePacks& packs, TemplatePlaces places)
    : sandboxes_(sandboxes),
      templates_(templates),
      packs_(packs),
      places_(std::move(places)),
      client_(sandboxes.services().executor, places_.run),
      reader_(1),
      turn_(sandboxes.services().executor) {}

Task<Result<void>> TemplateBuilds::load_rows() {
  loaded_ = false;
  auto read = [](store::Catalog& catalog) { return catalog.templates().all(); };
  ATOLL_CO_TRY(auto rows, co_await sandboxes_.services().ledger.run(read));
  auto read_tags = [](store::Catalog& catalog) { return catalog.templates().all_tags(); };
  ATOLL_CO_TRY(auto tags, co_await sandboxes_.services().ledger.run(read_tags));
  ATOLL_CO_TRY_VOID(templates_.set_rows(std::move(rows), std::move(tags)));
  loaded_ = true;
  co_return Result<void>();
}

Task<Result<void>> TemplateBuilds::load() {
  ATOLL_CO_TRY_VOID(co_await load_rows());
  co_return co_await collect();
}

const store::TemplateRow* TemplateBuilds::find_built(store::TenantId tenant,
                                                     const store::TemplatePack& pack) const {
  const auto* row = templates_.find_made_of(tenant, pack.manifest.name, pack.inputs);
  std::string image = row == nullptr ? "" : places_.images + "/" + row->image.string() + ".erofs";
  return row != nullptr && access(image.c_str(), R_OK) == 0 ? row : nullptr;
}

const store::TemplateRow* TemplateBuilds::find_current(store::TenantId tenant,
                                                       const store::TemplatePack& pack) const {
  const store::TemplateRow* row = find_built(tenant, pack);
  return row != nullptr && row->current ? row : nullptr;
}

void TemplateBuilds::remember(std::shared_ptr<TemplateBuild> build) {
  std::erase_if(known_, [&](const auto& one) {
    return one->ended() && one->tenant() == build->tenant() && one->name() == build->name();
  });
  while (known_.size() >= kMaxKnownBuilds) {
    auto oldest =
        std::find_if(known_.begin(), known_.end(), [](const auto& one) { return one->ended(); });
    if (oldest == known_.end()) break;
    known_.erase(oldest);
  }
  known_.push_back(std::move(build));
}

std::shared_ptr<TemplateBuild> TemplateBuilds::find(store::TenantId tenant,
                                                    std::string_view name) const {
  for (store::TenantId owner : {tenant, store::kLocalTenant})
    for (auto one = known_.rbegin(); one != known_.rend(); ++one)
      if ((*one)->tenant() == owner && (*one)->name() == name) return *one;
  return nullptr;
}

Task<Result<std::shared_ptr<TemplateBuild>>> TemplateBuilds::begin(PackOrder asked, Fd file) {
  auto work = [given = std::move(file)]() mutable {
    return store::open_template_pack(std::move(given));
  };
  auto read = co_await run_on(reader_, std::move(work));
  if (!read) co_return std::move(read).error();
  co_return enter(asked, std::move(*read));
}

Task<Result<std::shared_ptr<TemplateBuild>>> TemplateBuilds::begin(PackOrder asked, MakePack make) {
  auto work = [make = std::move(make)]() -> Result<store::TemplatePack> {
    ATOLL_TRY(Fd file, make());
    return store::open_template_pack(std::move(file));
  };
  auto read = co_await run_on(reader_, std::move(work));
  if (!read) co_return std::move(read).error();
  co_return enter(asked, std::move(*read));
}

// What it takes from the other is written into it: that one may change, or go.
Result<void> TemplateBuilds::find_base(store::TenantId tenant, Order& order) const {
  const auto* source = std::get_if<store::TemplateSource>(&order.pack.manifest.image);
  if (source == nullptr) return {};
  ATOLL_TRY(auto base, templates_.find_template(tenant, source->reference));
  if (!base)
    return Error(Code::kInvalid, "there is no template " + source->reference + " to grow from")
        .with_reason("invalid_template");
  std::string path = places_.images + "/" + base->image.string() + ".erofs";
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return Error::system("find the image of a template");
  order.base = isolate::BuiltImage{base->image, static_cast<uint64_t>(facts.st_size)};
  store::TemplatePack& pack = order.pack;
  pack.manifest_text += store::inherited_text(pack.manifest, base->manifest);
  auto whole = store::parse_template_manifest(pack.manifest_text, "template.toml");
  if (!whole) return std::move(whole).error().with_reason("invalid_template");
  pack.manifest = std::move(*whole);
  store::Sha256 inputs;
  inputs.update(pack.inputs.string() + pack.manifest_text + base->image.string());
  pack.inputs = inputs.finish();
  return {};
}

Result<std::shared_ptr<TemplateBuild>> TemplateBuilds::enter(const PackOrder& asked,
                                                             store::TemplatePack pack) {
  auto order = std::make_shared<Order>(Order{.build = nullptr, .pack = std::move(pack)});
  order->on_setup = asked.on_setup;
  order->tags = asked.tags;
  std::string name = order->pack.manifest.name;
  store::TenantId tenant = asked.tenant;
  if (!asked.name.empty() && asked.name != name)
    return Error(Code::kInvalid, "template.toml names " + name + ", the request " + asked.name)
        .with_reason("invalid_template");
  ATOLL_TRY_VOID(find_base(tenant, *order));
  for (const auto& one : known_)
    if (!one->ended() && one->tenant() == tenant && one->name() == name)
      return Error(Code::kConflict, "the template " + name + " is being built")
          .with_reason("template_busy");
  if (under_way_ >= kMaxWaitingBuilds)
    return Error(Code::kExhausted, "too many builds wait").with_reason("too_many_builds");
  auto build = std::make_shared<TemplateBuild>(sandboxes_.services().executor, tenant, name);
  order->build = build;
  remember(build);
  bool may_reuse = asked.freshness == Freshness::kAsBuilt;
  const store::TemplateRow* row = may_reuse ? find_built(tenant, order->pack) : nullptr;
  if (row != nullptr) build->append("nothing has changed\n");
  bool is_plain = asked.tags.size() == 1 && asked.tags[0] == kDefaultTag;
  if (row != nullptr && row->current && is_plain) {
    build->set_built(row->image);
    return build;
  }
  if (row != nullptr) order->built = isolate::BuiltImage{row->image, row->image_bytes};
  ++under_way_;
  // detached: it owns the build, which goes on whoever waits for it, until the io_context ends
  spawn(sandboxes_.services().executor, run(*this, order));
  return build;
}

Result<std::shared_ptr<TemplateBuild>> TemplateBuilds::begin_built_in(const std::string& name,
                                                                      Freshness freshness) {
  std::optional<std::string> folder = templates_.find_built_in(name);
  if (!folder)
    return Error(Code::kNotFound, "no template " + name + " comes with Atoll")
        .with_reason("template_not_found");
  for (const auto& one : known_)
    if (!one->ended() && one->tenant() == store::kLocalTenant && one->name() == name) return one;
  if (under_way_ >= kMaxWaitingBuilds)
    return Error(Code::kExhausted, "too many builds wait").with_reason("too_many_builds");
  auto executor = sandboxes_.services().executor;
  auto build = std::make_shared<TemplateBuild>(executor, store::kLocalTenant, name);
  remember(build);
  ++under_way_;
  // detached: it owns the build, which goes on whoever waits for it, until the io_context ends
  spawn(executor, run_built_in(*this, build, *folder, freshness));
  return build;
}

Result<void> TemplateBuilds::want_built_in(const std::string& name) {
  std::shared_ptr<TemplateBuild> last = find(store::kLocalTenant, name);
  if (last && last->failure() && std::chrono::steady_clock::now() < last->ended_at() + kRetryPause)
    return Error(Code::kUnavailable,
                 "the template " + name + " was not built: " + last->failure()->message())
        .with_reason("build_failed")
        .with_field("template");
  ATOLL_TRY([[maybe_unused]] auto begun, begin_built_in(name, Freshness::kAsBuilt));
  return {};
}

Task<void> TemplateBuilds::run_built_in(TemplateBuilds& self, std::shared_ptr<TemplateBuild> build,
                                        std::string folder, Freshness freshness) {
  auto work = [folder, into = self.packs_.directory()]() -> Result<store::TemplatePack> {
    ATOLL_TRY(Fd file, store::pack_folder(folder, into));
    return store::open_template_pack(std::move(file));
  };
  auto pack = co_await run_on(self.reader_, std::move(work));
  if (pack && pack->manifest.name != build->name())
    pack = Error(Code::kInvalid, folder + " has the template " + pack->manifest.name);
  if (!pack) {
    --self.under_way_;
    build->set_failed(pack.error());
    co_return;
  }
  auto order = std::make_shared<Order>(Order{.build = build, .pack = std::move(*pack)});
  auto based = self.find_base(store::kLocalTenant, *order);
  bool may_reuse = based && freshness == Freshness::kAsBuilt;
  const auto* row = may_reuse ? self.find_current(store::kLocalTenant, order->pack) : nullptr;
  if (based && row == nullptr) {
    co_await run(self, order);
    co_return;
  }
  --self.under_way_;
  if (!based) build->set_failed(based.error());
  if (row == nullptr) co_return;
  build->append("nothing has changed\n");
  build->set_built(row->image);
}

Task<void> TemplateBuilds::run(TemplateBuilds& self, std::shared_ptr<Order> order) {
  while (self.busy_) co_await self.turn_.wait();
  self.busy_ = true;
  order->build->begin();
  auto image = co_await self.make_image(*order);
  Result<void> stored;
  if (image) stored = co_await self.store(*order, *image);
  self.busy_ = false;
  --self.under_way_;
  self.turn_.notify_all();
  if (!image || !stored) {
    Error failure = image ? stored.error() : image.error();
    log_warning("template not built", {{"template", order->build->name()}, failure});
    order->build->set_failed(std::move(failure));
  } else {
    log_info("template built",
             {{"template", order->build->name()}, {"image", image->image.string()}});
    order->build->set_built(image->image);
  }
  (void)co_await self.collect();
}

Task<Result<isolate::BuiltImage>> TemplateBuilds::make_image(Order& order) {
  if (order.built) co_return *order.built;
  auto build = order.build;
  auto log = [build](std::string_view piece) { build->append(piece); };
  const store::TemplateManifest& manifest = order.pack.manifest;
  std::optional<isolate::BuiltImage> image = order.base;
  if (!image) {
    isolate::BuildOrder asked{
        .operation = builder::Operation::kPack,
        .flags = build->tenant() == store::kLocalTenant ? builder::kWithCredentials : 0,
        .file = order.pack.file.get()};
    ATOLL_CO_TRY(image, co_await client_.build(asked, log));
  }
  crash_point("build.image");
  bool has_files = order.base && !manifest.files.empty();
  if (manifest.setup.empty() && !has_files) co_return *image;
  TemplateSetup setup(sandboxes_, build, packs_.directory());
  setup.set_on_setup(order.on_setup);
  if (has_files) {
    Fd pack(fcntl(order.pack.file.get(), F_DUPFD_CLOEXEC, 0));
    if (!pack) co_return Error::system("fcntl");
    setup.set_files(std::move(pack));
  }
  ATOLL_CO_TRY(Fd tree, co_await setup.run(image->image, manifest));
  crash_point("build.setup");
  isolate::BuildOrder again{.operation = builder::Operation::kTree, .flags = 0, .file = tree.get()};
  co_return co_await client_.build(again, log);
}

Task<Result<void>> TemplateBuilds::store(const Order& order, const isolate::BuiltImage& image) {
  ATOLL_CO_TRY_VOID(packs_.keep(order.pack));
  crash_point("build.pack");
  store::TemplateRow row{.tenant = order.build->tenant(),
                         .name = order.pack.manifest.name,
                         .image = image.image,
                         .inputs = order.pack.inputs,
                         .pack = order.pack.digest,
                         .manifest = order.pack.manifest_text,
                         .image_bytes = image.image_bytes,
                         .created_at_ms = to_milliseconds(sandboxes_.services().clock.wall_now()),
                         .current = true,
                         .sequence = sandboxes_.services().ledger.draw()};
  auto put = [row, tags = order.tags](store::Catalog& catalog) {
    return catalog.templates().put(row, tags);
  };
  ATOLL_CO_TRY_VOID(co_await sandboxes_.services().ledger.run(put));
  crash_point("build.stored");
  co_return co_await load_rows();
}

Task<Result<void>> TemplateBuilds::remove(store::TenantId tenant, std::string name) {
  auto drop = [tenant, name](store::Catalog& catalog) {
    return catalog.templates().remove(tenant, name);
  };
  auto removed = co_await sandboxes_.services().ledger.run(drop);
  if (!removed && removed.error().code() == Code::kNotFound)
    co_return std::move(removed).error().with_reason("template_not_found");
  if (!removed) co_return removed;
  ATOLL_CO_TRY_VOID(co_await load_rows());
  std::erase_if(known_, [&](const auto& one) {
    return one->ended() && one->tenant() == tenant && one->name() == name;
  });
  (void)co_await collect();
  co_return Result<void>();
}

Task<Result<Digest>> TemplateBuilds::tag(store::TenantId tenant, std::string reference,
                                         std::vector<std::string> tags) {
  ATOLL_CO_TRY(auto found, templates_.find(tenant, reference));
  bool is_own = found && found->origin == KnownTemplate::Origin::kOwn && found->image;
  if (!is_own)
    co_return Error(Code::kNotFound, "you have no template " + reference)
        .with_reason("template_not_found");
  int64_t now = to_milliseconds(sandboxes_.services().clock.wall_now());
  std::vector<store::TemplateTag> rows;
  for (std::string& one : tags)
    rows.push_back({tenant, found->name, std::move(one), *found->image, now});
  auto put = [rows](store::Catalog& catalog) { return catalog.templates().put_tags(rows); };
  ATOLL_CO_TRY_VOID(co_await sandboxes_.services().ledger.run(put));
  ATOLL_CO_TRY_VOID(co_await load_rows());
  (void)co_await collect();
  co_return *found->image;
}

Task<Result<void>> TemplateBuilds::untag(store::TenantId tenant, std::string name,
                                         std::vector<std::string> tags) {
  ATOLL_CO_TRY(auto found, templates_.find(tenant, name));
  if (!found || found->origin != KnownTemplate::Origin::kOwn)
    co_return Error(Code::kNotFound, "you have no template " + name)
        .with_reason("template_not_found");
  auto drop = [tenant, own = found->name, tags](store::Catalog& catalog) {
    return catalog.templates().remove_tags(tenant, own, tags);
  };
  ATOLL_CO_TRY_VOID(co_await sandboxes_.services().ledger.run(drop));
  ATOLL_CO_TRY_VOID(co_await load_rows());
  (void)co_await collect();
  co_return Result<void>();
}

Task<void> TemplateBuilds::sweep() {
  if (sandboxes_.services().clock.steady_now() < collected_at_ + kCollectPause) co_return;
  (void)co_await collect();
}

// Not while anything is built: what a build has made is not referred to yet.
Task<Result<void>> TemplateBuilds::collect() {
  if (under_way_ > 0 || !loaded_) co_return Result<void>();
  collected_at_ = sandboxes_.services().clock.steady_now();
  auto packed = packs_.keep_only(templates_.packs(), sandboxes_.services().ledger.unlisted());
  if (!packed) log_warning("packs could not be removed", {packed.error()});
  auto collected = co_await collect_images();
  if (!collected) log_warning("images are not collected", {collected.error()});
  co_return packed;
}

Task<Result<void>> TemplateBuilds::collect_images() {
  Services& services = sandboxes_.services();
  int64_t joined_ms = services.ledger.joined_at_ms();
  int64_t now_ms = to_milliseconds(services.clock.wall_now());
  if (joined_ms != 0 && now_ms < joined_ms + store::kLostFoundTimeMs) co_return Result<void>();
  ATOLL_CO_TRY(std::vector<Digest> used, templates_.images());
  auto read = [](store::Catalog& catalog) -> Result<std::vector<Digest>> {
    ATOLL_TRY(auto images, catalog.sandboxes().all_images());
    ATOLL_TRY(auto kept, catalog.snapshots().all_images());
    images.insert(images.end(), kept.begin(), kept.end());
    return images;
  };
  ATOLL_CO_TRY(std::vector<Digest> running, co_await services.ledger.run(read));
  used.insert(used.end(), running.begin(), running.end());
  for (const Digest& image : sandboxes_.pool().images()) used.push_back(image);
  std::vector<Digest> unused;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(places_.images, error)) {
    auto digest = Digest::parse(entry.path().stem().string());
    struct stat facts;
    bool old = stat(entry.path().c_str(), &facts) == 0 &&
               facts.st_mtim.tv_sec + kCollectAgeSeconds < time(nullptr);
    if (!digest || std::find(used.begin(), used.end(), *digest) != used.end()) continue;
    if (old) unused.push_back(*digest);
  }
  for (const Digest& image : unused) {
    auto removed = co_await services.driver.remove_image(image);
    if (!removed) log_warning("image could not be removed", {removed.error()});
  }
  co_return Result<void>();
}

}  // namespace atl::sandbox
