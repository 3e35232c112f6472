// The templates that are installed on this host: `<directory>/<name>/template.toml`, and beside it
// `image` with the digest of the built image as text. Files are read on demand and again when they
// change, so adding a template needs no restart. Belongs to one thread at a time.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/template_manifest.h"

namespace atl::store {

struct Template {
  TemplateManifest manifest;
  Digest image;
};

class Templates {
 public:
  static Result<Templates> open(const std::string& directory);
  // Out of line: g++ 12 sees a delete of memory that is not on the heap when they are inlined.
  Templates(Templates&&) noexcept;
  Templates& operator=(Templates&&) noexcept;
  ~Templates();

  // Nothing: no such template, or no name a template can have. An error: it is there and unusable.
  Result<std::optional<Template>> find_template(std::string_view name);
  // Names in alphabetical order, also of those that are unusable.
  Result<std::vector<std::string>> list();

 private:
  // Changes whenever a file was replaced or written to.
  struct Stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    int64_t modified_ns;
    int64_t changed_ns;
    bool operator==(const Stamp&) const = default;
  };
  struct Stamps {
    Stamp manifest;
    Stamp image;
    bool operator==(const Stamps&) const = default;
  };
  struct Entry {
    Stamps stamps;
    Template content;
  };

  Templates(std::string path, Fd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  static Result<Stamp> stamp_of(int fd);
  Result<Template> read_template(const std::string& name, int manifest_fd, int image_fd);

  std::string path_;
  Fd directory_;
  std::map<std::string, Entry, std::less<>> read_;
};

}  // namespace atl::store
