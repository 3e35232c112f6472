#include "cli/transfer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/local_tree.h"
#include "cli/progress.h"
#include "cli/readable.h"
#include "cli/remote_path.h"
#include "cli/tar.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

// Directories and the words of a path that name none of their own.
bool names_something(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != "-";
}

std::string join(const std::string& directory, const std::string& name) {
  return directory + (directory.ends_with('/') ? "" : "/") + name;
}

// "file", "directory", ...; empty when there is nothing.
Result<std::string> remote_type(Api& api, const RemotePath& place, const std::string& user) {
  ATOLL_TRY(std::string target, file_target(place, "stat", user));
  auto entry = api.call({.target = target});
  if (entry) return text_field(*entry, "type");
  if (entry.error().reason() == "file_not_found") return std::string();
  return std::move(entry).error();
}

// Where a copy of `name` goes.
Result<RemotePath> remote_destination(Api& api, const RemotePath& remote, const std::string& name,
                                      const std::string& user) {
  if (!names_something(name)) return remote;
  bool is_directory = remote.path.ends_with('/');
  if (!is_directory) {
    ATOLL_TRY(std::string type, remote_type(api, remote, user));
    is_directory = type == "directory";
  }
  return is_directory ? RemotePath{remote.sandbox, join(remote.path, name)} : remote;
}

std::string local_destination(const std::string& local, const std::string& name) {
  struct stat facts;
  bool is_directory = stat(local.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  return is_directory && names_something(name) ? join(local, name) : local;
}

Result<void> put_file(Api& api, const Fd& file, const RemotePath& remote,
                      const TransferOptions& options) {
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return Error::system("stat the file to copy");
  std::optional<uint64_t> bytes;
  std::string query;
  if (S_ISREG(facts.st_mode)) {
    bytes = static_cast<uint64_t>(facts.st_size);
    query = fmt::format("mode={:04o}", facts.st_mode & 0777);
  }
  Progress progress(base_name(remote.path), bytes);
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    ssize_t count = read(file.get(), piece.data(), piece.size());
    while (count < 0 && errno == EINTR) count = read(file.get(), piece.data(), piece.size());
    if (count < 0) return Error::system("read the file to copy");
    progress.add(static_cast<uint64_t>(count));
    return static_cast<size_t>(count);
  };
  ATOLL_TRY(std::string target, file_target(remote, query, options.user));
  Api::Call call{.method = http::Method::kPut, .target = target};
  call.headers.add("Content-Type", "application/octet-stream");
  ATOLL_TRY_VOID(api.upload(call, {source, bytes}));
  return {};
}

Result<std::string> archive_target(const RemotePath& place, const std::string& user) {
  ATOLL_TRY(std::string target, sandbox_target(place.sandbox));
  target += "/archive?path=" + percent_encode(place.path, "/-._~");
  if (!user.empty()) target += "&user=" + percent_encode(user);
  return target;
}

Result<void> put_directory(Api& api, const std::string& local, const RemotePath& remote,
                           const TransferOptions& options) {
  ATOLL_TRY(TarWriter archive, TarWriter::open(local));
  ATOLL_TRY(std::string directory, file_target(remote, "mkdir&parents=true", options.user));
  ATOLL_TRY_VOID(api.call({.method = http::Method::kPost, .target = directory}));
  Progress progress(base_name(local), std::nullopt);
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    ATOLL_TRY(size_t count, archive.read(piece));
    progress.add(count);
    return count;
  };
  ATOLL_TRY(std::string target, archive_target(remote, options.user));
  Api::Call call{.method = http::Method::kPut, .target = target};
  call.headers.add("Content-Type", "application/x-tar");
  ATOLL_TRY_VOID(api.upload(call, {source, std::nullopt}));
  return {};
}

// A file that appears under its name when it is whole.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path) {
    NewFile file(path);
    file.temporary_ = path + ".XXXXXX";
    file.fd_ = Fd(mkostemp(file.temporary_.data(), O_CLOEXEC));
    if (!file.fd_) return Error::system("create " + path);
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, "")),
        fd_(std::move(other.fd_)) {}
  ~NewFile() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  int fd() const { return fd_.get(); }
  Result<void> publish(unsigned mode) {
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(fd_.get(), mode & 0777 & ~mask) != 0)
      return Error::system("set the mode of " + path_);
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return Error::system("make " + path_);
    temporary_.clear();
    return {};
  }

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::string temporary_;
  Fd fd_;
};

Result<void> get_bytes(Api& api, const std::string& target, int fd, Progress& progress) {
  Result<void> written;
  auto on_bytes = [&](std::string_view bytes) {
    progress.add(bytes.size());
    return (written = write_all(fd, bytes)).ok();
  };
  ATOLL_TRY_VOID(api.stream({.target = target}, on_bytes));
  return written;
}

Result<void> get_file(Api& api, const RemotePath& remote, const std::string& local,
                      const json::object& entry, const std::string& user) {
  Progress progress(base_name(remote.path), number_field(entry, "size"));
  ATOLL_TRY(std::string target, file_target(remote, "", user));
  if (local == "-") return get_bytes(api, target, STDOUT_FILENO, progress);
  ATOLL_TRY(NewFile file, NewFile::create(local_destination(local, base_name(remote.path))));
  ATOLL_TRY_VOID(get_bytes(api, target, file.fd(), progress));
  unsigned mode = static_cast<unsigned>(strtoul(text_field(entry, "mode").c_str(), nullptr, 8));
  return file.publish(mode == 0 ? 0644 : mode);
}

Result<void> get_directory(Api& api, const RemotePath& remote, const std::string& local,
                           const std::string& user) {
  ATOLL_TRY(LocalTree tree, LocalTree::open(local_destination(local, base_name(remote.path))));
  TarReader archive(tree);
  Progress progress(base_name(remote.path), std::nullopt);
  Result<void> unpacked;
  auto on_bytes = [&](std::string_view bytes) {
    progress.add(bytes.size());
    return (unpacked = archive.feed(bytes)).ok();
  };
  ATOLL_TRY(std::string target, archive_target(remote, user));
  ATOLL_TRY_VOID(api.stream({.target = target}, on_bytes));
  ATOLL_TRY_VOID(std::move(unpacked));
  ATOLL_TRY_VOID(archive.finish());
  if (archive.skipped() > 0)
    fprintf(stderr, "atoll: %llu entries were left out: links out of the directory, devices\n",
            static_cast<unsigned long long>(archive.skipped()));
  return {};
}

}  // namespace

Result<std::string> file_target(const RemotePath& place, const std::string& query,
                                const std::string& user) {
  ATOLL_TRY(std::string target, sandbox_target(place.sandbox));
  target += "/files" + percent_encode(place.path, "/-._~");
  std::string all = query;
  if (!user.empty()) all += (all.empty() ? "user=" : "&user=") + percent_encode(user);
  return all.empty() ? target : target + "?" + all;
}

Result<void> put_bytes(Api& api, const RemotePath& remote, std::string_view bytes) {
  ATOLL_TRY(std::string target, file_target(remote, ""));
  Api::Call call{.method = http::Method::kPut, .target = target};
  call.headers.add("Content-Type", "application/octet-stream");
  std::string_view left = bytes;
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    size_t count = std::min(piece.size(), left.size());
    memcpy(piece.data(), left.data(), count);
    left.remove_prefix(count);
    return count;
  };
  ATOLL_TRY_VOID(api.upload(call, {source, bytes.size()}));
  return {};
}

Result<void> copy_into(Api& api, const std::string& local, const RemotePath& remote,
                       const TransferOptions& options) {
  if (local == "-") {
    Fd input(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!input) return Error::system("use standard input");
    return put_file(api, input, remote, options);
  }
  ATOLL_TRY(Fd file, open_file(local, O_RDONLY));
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return Error::system("stat " + local);
  bool is_directory = S_ISDIR(facts.st_mode);
  if (is_directory && options.depth == Depth::kFlat)
    return Error(Code::kInvalid, local + " is a directory\n  remedy: atoll cp -r");
  ATOLL_TRY(RemotePath target, remote_destination(api, remote, base_name(local), options.user));
  if (is_directory) return put_directory(api, local, target, options);
  return put_file(api, file, target, options);
}

Result<void> copy_out(Api& api, const RemotePath& remote, const std::string& local,
                      const TransferOptions& options) {
  ATOLL_TRY(std::string target, file_target(remote, "stat", options.user));
  ATOLL_TRY(json::object entry, api.call({.target = target}));
  if (text_field(entry, "type") != "directory")
    return get_file(api, remote, local, entry, options.user);
  if (options.depth == Depth::kFlat)
    return Error(Code::kInvalid, remote.path + " is a directory\n  remedy: atoll cp -r");
  if (local == "-") return Error(Code::kInvalid, "a directory cannot go to standard output");
  return get_directory(api, remote, local, options.user);
}

}  // namespace atl::cli
