#include "store/templates.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/file.h"

namespace atl::store {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

Result<Digest> parse_image(std::string text, const std::string& path) {
  if (text.ends_with('\n')) text.pop_back();
  auto digest = Digest::parse(text);
  if (!digest) return Error(Code::kCorrupt, path + ": is not a digest; add the template again");
  return *digest;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Templates::Templates(Templates&&) noexcept = default;
Templates& Templates::operator=(Templates&&) noexcept = default;
Templates::~Templates() = default;

Result<Templates> Templates::open(const std::string& directory) {
  auto fd = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::move(fd).error().with_context("templates");
  return Templates(directory, std::move(*fd));
}

Result<Templates::Stamp> Templates::stamp_of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return Error::system("stat");
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalid, "is not a regular file");
  return Stamp{
      .device = status.st_dev,
      .inode = status.st_ino,
      .size = status.st_size,
      .modified_ns = status.st_mtim.tv_sec * kNanosecondsPerSecond + status.st_mtim.tv_nsec,
      .changed_ns = status.st_ctim.tv_sec * kNanosecondsPerSecond + status.st_ctim.tv_nsec};
}

Result<std::optional<Template>> Templates::find_template(std::string_view name) {
  if (!is_template_name(name)) return std::optional<Template>();
  std::string owned(name);
  auto folder = open_at(directory_.get(), owned, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) {
    read_.erase(owned);
    if (folder.error().code() == Code::kNotFound) return std::optional<Template>();
    return std::move(folder).error().with_context("template");
  }
  std::string context = "template " + owned;
  auto manifest = open_at(folder->get(), "template.toml", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!manifest) return std::move(manifest).error().with_context(context);
  auto image = open_at(folder->get(), "image", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!image && image.error().code() == Code::kNotFound)
    return Error(Code::kUnavailable, context + ": has no image yet; build it and add it again");
  if (!image) return std::move(image).error().with_context(context);

  // Stamps of the open files, so that they belong to the bytes that are read below.
  auto manifest_stamp = stamp_of(manifest->get());
  if (!manifest_stamp) return std::move(manifest_stamp).error().with_context(context);
  auto image_stamp = stamp_of(image->get());
  if (!image_stamp) return std::move(image_stamp).error().with_context(context);
  Stamps stamps{.manifest = *manifest_stamp, .image = *image_stamp};
  if (auto known = read_.find(owned); known != read_.end() && known->second.stamps == stamps)
    return std::optional(known->second.content);

  ATOLL_TRY(Template content, read_template(owned, manifest->get(), image->get()));
  read_.insert_or_assign(owned, Entry{.stamps = stamps, .content = content});
  return std::optional(std::move(content));
}

Result<Template> Templates::read_template(const std::string& name, int manifest_fd, int image_fd) {
  std::string folder = path_ + "/" + name;
  std::string manifest_path = folder + "/template.toml";
  auto text = read_all(manifest_fd);
  if (!text) return std::move(text).error().with_context(manifest_path);
  ATOLL_TRY(TemplateManifest manifest, parse_template_manifest(*text, manifest_path));
  if (manifest.name != name)
    return Error(Code::kInvalid,
                 manifest_path + ": name is \"" + manifest.name + "\" and not that of its folder");
  auto image_text = read_all(image_fd, 1024);
  if (!image_text) return std::move(image_text).error().with_context(folder + "/image");
  ATOLL_TRY(Digest image, parse_image(std::move(*image_text), folder + "/image"));
  return Template{.manifest = std::move(manifest), .image = image};
}

Result<std::vector<std::string>> Templates::list() {
  // A stream of its own: reading moves the position of the descriptor it is given.
  ATOLL_TRY(Fd fd, open_at(directory_.get(), ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(fd.get()));
  if (!stream) return Error::system("list " + path_);
  (void)fd.release();  // closed by closedir

  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr && errno != 0) return Error::system("list " + path_);
    if (entry == nullptr) break;
    // Others are not templates: ".", "..", files, and folders that are being put together.
    if (!is_template_name(entry->d_name)) continue;
    struct stat status;
    if (fstatat(directory_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(status.st_mode)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace atl::store
