#include "builder/stages.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "builder/archive_file.h"
#include "builder/debian.h"
#include "builder/finish.h"
#include "builder/go_build.h"
#include "builder/kernel_image.h"
#include "builder/npm.h"
#include "builder/oci_layout.h"
#include "builder/pack_files.h"
#include "builder/package_files.h"
#include "builder/program.h"
#include "builder/registry.h"
#include "builder/removals.h"
#include "builder/tree.h"
#include "linux/open_resolved.h"
#include "store/template_manifest.h"

namespace atl::builder {
namespace {

using store::TemplateManifest;

constexpr const char* kPack = "/build/pack";
constexpr const char* kDebianTar = "/build/root.tar";
constexpr const char* kLayout = "/build/oci";
constexpr const char* kNpm = "/build/npm";
constexpr const char* kRoot = "/build/root";
constexpr const char* kImage = "/build/image.erofs";
constexpr size_t kMaxManifestBytes = 256 * 1024;
constexpr const char* kUuid = "a7011a70-11a7-4011-a701-1a7011a7011a";
// Times up to here are kept as they are; a fixed one also makes the superblock the same each time.
constexpr const char* kLatestTime = "SOURCE_DATE_EPOCH=2000000000";

void say(const char* step) {
  printf("#step %s\n", step);
  fflush(stdout);
}

// Links stay in the pack.
Result<Fd> open_in_pack(const std::string& path, int flags) {
  ATOLL_TRY(Fd pack, open_file(kPack, O_RDONLY | O_DIRECTORY));
  Fd found = linux::open_resolved(pack.get(), path,
                                  {.flags = flags | O_RDONLY | O_NONBLOCK,
                                   .mode = 0,
                                   .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
  if (!found) return Error(Code::kInvalid, "the template has no usable " + path);
  return found;
}

Result<TemplateManifest> read_manifest() {
  ATOLL_TRY(Fd file, open_in_pack("template.toml", 0));
  auto text = read_all(file.get(), kMaxManifestBytes);
  if (!text) return Error(Code::kInvalid, "template.toml is no file of at most 256 KiB");
  return store::parse_template_manifest(*text, "template.toml");
}

Result<void> unpack_into(Tree& tree, int fd, UnpackBudget& budget, const Tree::Place& place) {
  ATOLL_TRY(ArchiveFile archive, ArchiveFile::open(fd, budget));
  return tree.add(archive, Tree::Kind::kPlain, place);
}

Result<void> unpack_layers(Tree& tree, int layout, UnpackBudget& budget) {
  ATOLL_TRY(std::vector<Fd> layers, open_layers(layout));
  for (size_t i = 0; i < layers.size(); ++i) {
    printf("layer %zu of %zu\n", i + 1, layers.size());
    fflush(stdout);
    // Looked through twice, because what a layer hides may come after what it brings.
    UnpackBudget looked = budget;
    ATOLL_TRY(ArchiveFile hiding, ArchiveFile::open(layers[i].get(), looked));
    if (i > 0) ATOLL_TRY_VOID(tree.apply_whiteouts(hiding));
    ATOLL_TRY(ArchiveFile layer, ArchiveFile::open(layers[i].get(), budget));
    ATOLL_TRY_VOID(tree.add(layer, Tree::Kind::kLayer, {}));
  }
  return {};
}

Tree::Place keep_of_debian(store::TemplateKind kind) {
  return [kind](ArchiveEntry& entry) {
    std::string_view path = entry.path;
    if (path.starts_with("./")) path.remove_prefix(2);
    return is_kept_of_debian(path, kind);
  };
}

Result<void> unpack_manifest_source(Tree& tree, const TemplateManifest& manifest) {
  UnpackBudget budget;
  if (std::holds_alternative<store::EmptySource>(manifest.image)) return {};
  if (std::holds_alternative<store::DebianSource>(manifest.image)) {
    ATOLL_TRY(Fd tar, open_file(kDebianTar, O_RDONLY | O_NOFOLLOW));
    return unpack_into(tree, tar.get(), budget, keep_of_debian(manifest.kind));
  }
  if (const auto* tar = std::get_if<store::RootfsTarSource>(&manifest.image)) {
    ATOLL_TRY(Fd file, open_in_pack(tar->path, 0));
    return unpack_into(tree, file.get(), budget, {});
  }
  if (const auto* layout = std::get_if<store::OciLayoutSource>(&manifest.image)) {
    ATOLL_TRY(Fd directory, open_in_pack(layout->path, O_DIRECTORY));
    return unpack_layers(tree, directory.get(), budget);
  }
  ATOLL_TRY(Tree layout, Tree::open(kLayout));
  if (const auto* archive = std::get_if<store::OciArchiveSource>(&manifest.image)) {
    ATOLL_TRY(Fd file, open_in_pack(archive->path, 0));
    UnpackBudget outer;
    ATOLL_TRY_VOID(unpack_into(layout, file.get(), outer, {}));
  }
  return unpack_layers(tree, layout.root(), budget);
}

Result<void> take_out(Tree& tree, const std::vector<std::string>& globs) {
  ATOLL_TRY(uint64_t removed, remove_matching(tree.root(), globs));
  if (removed > 0)
    printf("%llu files and directories were removed\n", static_cast<unsigned long long>(removed));
  return {};
}

Result<void> finish(Tree& tree) {
  if (tree.left_out() > 0)
    printf("%llu devices, sockets and FIFOs were left out\n",
           static_cast<unsigned long long>(tree.left_out()));
  return finish_tree(tree);
}

Result<std::string> with_go(Result<void> (*step)(const store::GoProgram& program)) {
  ATOLL_TRY(TemplateManifest manifest, read_manifest());
  if (!manifest.go) return Error(Code::kInvalid, "template.toml has changed");
  ATOLL_TRY_VOID(step(*manifest.go));
  return std::string();
}

}  // namespace

Result<std::string> open_pack(int pack) {
  say("1/5 opening the template");
  UnpackBudget budget;
  ATOLL_TRY(Tree tree, Tree::open(kPack));
  ATOLL_TRY_VOID(unpack_into(tree, pack, budget, {}));
  ATOLL_TRY(TemplateManifest manifest, read_manifest());
  if (std::holds_alternative<store::TemplateSource>(manifest.image))
    return Error(Code::kInvalid, "image.template: only atolld knows other templates");
  std::string wanted;
  if (std::holds_alternative<store::DebianSource>(manifest.image)) wanted += kFetchDebian;
  if (std::holds_alternative<store::OciSource>(manifest.image) || !manifest.npm.empty())
    wanted += kFetchRegistry;
  if (manifest.go) wanted += kFetchGo;
  return wanted;
}

Result<std::string> fetch_debian() {
  say("2/5 installing packages");
  ATOLL_TRY(TemplateManifest manifest, read_manifest());
  const auto* source = std::get_if<store::DebianSource>(&manifest.image);
  if (source == nullptr) return Error(Code::kInvalid, "template.toml has changed");
  if (manifest.kind == store::TemplateKind::kToolbox) {
    ATOLL_TRY_VOID(fetch_package_files(*source, kDebianTar));
    return std::string();
  }
  std::string files = manifest.files.empty() ? "" : kPack + ("/" + manifest.files);
  ATOLL_TRY_VOID(make_debian_root(*source, files, kDebianTar));
  return std::string();
}

Result<std::string> fetch_registry(int credentials) {
  say("2/5 fetching the image");
  ATOLL_TRY(TemplateManifest manifest, read_manifest());
  if (const auto* source = std::get_if<store::OciSource>(&manifest.image))
    ATOLL_TRY_VOID(fetch_image(source->reference, credentials, kLayout));
  if (!manifest.npm.empty()) ATOLL_TRY_VOID(fetch_npm(manifest.npm, kNpm));
  return std::string();
}

Result<std::string> fetch_go_zips() {
  say("2/5 fetching a Go module");
  return with_go(fetch_go);
}

Result<std::string> unpack_go_zips() { return with_go(unpack_go); }

Result<std::string> resolve_go_modules() { return with_go(resolve_go); }

Result<std::string> compile_go_program() { return with_go(compile_go); }

Result<std::string> unpack_source() {
  say("3/5 unpacking");
  ATOLL_TRY(TemplateManifest manifest, read_manifest());
  ATOLL_TRY(Tree tree, Tree::open(kRoot));
  ATOLL_TRY_VOID(unpack_manifest_source(tree, manifest));
  UnpackBudget budget;
  ATOLL_TRY_VOID(install_npm(tree, manifest.npm, kNpm, budget));
  if (manifest.go) ATOLL_TRY_VOID(install_go(tree, *manifest.go));
  ATOLL_TRY_VOID(take_out(tree, manifest.remove));
  if (manifest.kind != store::TemplateKind::kToolbox) ATOLL_TRY_VOID(finish(tree));
  if (manifest.kind == store::TemplateKind::kMonitor)
    ATOLL_TRY_VOID(add_unpacked_kernel(tree.root()));
  if (!manifest.files.empty()) {
    ATOLL_TRY(Fd files, open_in_pack(manifest.files, O_DIRECTORY));
    ATOLL_TRY_VOID(copy_pack_files(files.get(), tree.root()));
  }
  ATOLL_TRY_VOID(tree.settle_times());
  return std::string();
}

Result<std::string> unpack_tree(int archive) {
  say("3/5 unpacking");
  UnpackBudget budget;
  ATOLL_TRY(Tree tree, Tree::open(kRoot));
  ATOLL_TRY_VOID(unpack_into(tree, archive, budget, {}));
  ATOLL_TRY_VOID(finish(tree));
  ATOLL_TRY_VOID(tree.settle_times());
  return std::string();
}

Result<std::string> write_image() {
  say("4/5 writing the image");
  // Files begin and end at blocks of their own: gVisor maps them from the image and cannot cut one.
  ATOLL_TRY_VOID(run_program({{"/usr/bin/mkfs.erofs", "--quiet", "-U", kUuid, "-x-1", "-E",
                               "noinline_data", kImage, kRoot},
                              {"PATH=/usr/bin:/bin", kLatestTime}}));
  return std::string();
}

Result<std::string> remove_work() {
  // It may be anything that foreign code could make: find copes with every depth.
  ATOLL_TRY_VOID(
      run_program({{"/usr/bin/find", "/build", "-xdev", "-mindepth", "1", "-delete"}, {}}));
  return std::string();
}

}  // namespace atl::builder
