#include "builder/finish.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/file.h"
#include "linux/open_resolved.h"

namespace atl::builder {
namespace {

constexpr uid_t kUser = 1000;
constexpr size_t kMaxPasswdBytes = 1 << 20;

struct Place {
  const char* name;
  mode_t mode;
};
// A sandbox mounts onto these: real directories of the root, not links.
constexpr Place kMountPoints[] = {{"dev", 0755}, {"proc", 0555}, {"sys", 0555}, {"run", 0755}};

Fd open_directory(int root, const std::string& path) {
  return linux::open_resolved(root, path,
                              {.flags = O_RDONLY | O_DIRECTORY,
                               .mode = 0,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
}

// Made if it is not there; found through links of the image.
Result<Fd> want_directory(int above, const std::string& name, mode_t mode) {
  Fd found = open_directory(above, name);
  if (found) return found;
  ATOLL_TRY_VOID(remove_at(above, name));
  if (mkdirat(above, name.c_str(), 0755) != 0) return Error::system("mkdir " + name);
  ATOLL_TRY(Fd made, open_at(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (fchmod(made.get(), mode) != 0) return Error::system("chmod " + name);
  return made;
}

Result<void> make_mount_point(int root, const Place& place, bool emptied) {
  struct stat facts;
  bool usable =
      fstatat(root, place.name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
  if (!usable) ATOLL_TRY_VOID(remove_at(root, place.name));
  if (!usable && mkdirat(root, place.name, 0755) != 0) return Error::system("mkdir");
  ATOLL_TRY(Fd made, open_at(root, place.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (emptied) ATOLL_TRY_VOID(empty_directory(made.get()));
  if (fchmod(made.get(), place.mode) != 0 || fchown(made.get(), 0, 0) != 0)
    return Error::system(std::string("make ") + place.name);
  return {};
}

Result<void> write_file(int directory, const std::string& name, std::string_view text,
                        mode_t mode = 0644) {
  ATOLL_TRY_VOID(remove_at(directory, name));
  ATOLL_TRY(Fd file, open_at(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  ATOLL_TRY_VOID(write_all(file.get(), text));
  if (fchmod(file.get(), mode) != 0) return Error::system("chmod " + name);
  return {};
}

// Empty if it is no plain file.
Result<std::string> read_plain(int directory, const char* name) {
  auto file = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat facts;
  if (!file || fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::string();
  auto text = read_all(file->get(), kMaxPasswdBytes);
  if (!text) return Error(Code::kInvalid, std::string("etc/") + name + " is over 1 MiB");
  return std::move(*text);
}

bool has_entry(const std::string& text, const std::string& name, const std::string& id) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string found_name, password, found_id;
    std::getline(fields, found_name, ':');
    std::getline(fields, password, ':');
    std::getline(fields, found_id, ':');
    if (found_name == name || found_id == id) return true;
  }
  return false;
}

Result<void> append_line(int etc, const char* name, const std::string& before,
                         const std::string& line) {
  std::string text = before;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  struct stat facts;
  mode_t mode = fstatat(etc, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_mode & 0777 : 0644;
  return write_file(etc, name, text + line + "\n", mode);
}

Result<void> copy_skeleton(int etc, int home) {
  auto skeleton = open_at(etc, "skel", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!skeleton) return {};
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(skeleton->get()), closedir);
  if (!entries) return Error::system("read etc/skel");
  int directory = skeleton->release();
  while (const dirent* entry = readdir(entries.get())) {
    struct stat facts;
    if (fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode))
      continue;
    ATOLL_TRY(std::string text, read_plain(directory, entry->d_name));
    ATOLL_TRY_VOID(write_file(home, entry->d_name, text));
    if (fchownat(home, entry->d_name, kUser, kUser, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::system("chown");
  }
  return {};
}

// An image that has somebody with the id, or of the name, keeps him.
Result<void> add_user(int root, int etc) {
  ATOLL_TRY(std::string passwd, read_plain(etc, "passwd"));
  if (passwd.empty()) passwd = "root:*:0:0:root:/root:/bin/sh\n";
  if (has_entry(passwd, "user", "1000")) return {};
  ATOLL_TRY(std::string group, read_plain(etc, "group"));
  if (group.empty()) group = "root:x:0:\n";
  ATOLL_TRY(std::string shadow, read_plain(etc, "shadow"));
  Fd bash = linux::open_resolved(root, "bin/bash",
                                 {.flags = O_PATH, .mode = 0, .resolve = RESOLVE_IN_ROOT});
  // "*" is no password; the x that points to a shadow file is used only where there is one.
  ATOLL_TRY_VOID(append_line(etc, "passwd", passwd,
                             std::string("user:") + (shadow.empty() ? "*" : "x") +
                                 ":1000:1000::/home/user:" + (bash ? "/bin/bash" : "/bin/sh")));
  if (!has_entry(group, "user", "1000"))
    ATOLL_TRY_VOID(append_line(etc, "group", group, "user:x:1000:"));
  if (!shadow.empty())
    ATOLL_TRY_VOID(append_line(etc, "shadow", shadow, "user:!:19000:0:99999:7:::"));
  ATOLL_TRY(Fd homes, want_directory(root, "home", 0755));
  ATOLL_TRY(Fd home, want_directory(homes.get(), "user", 0755));
  if (fchown(home.get(), kUser, kUser) != 0) return Error::system("chown home/user");
  return copy_skeleton(etc, home.get());
}

// Debian's login shells start a program to learn who they are, which takes longer than all else
// they do; bash knows it. Other shells ask as before.
Result<void> spare_login_shells(int etc) {
  constexpr std::string_view kAsk = "$(id -u)";
  constexpr std::string_view kKnow = "${EUID:-$(id -u)}";
  ATOLL_TRY(std::string text, read_plain(etc, "profile"));
  struct stat facts;
  size_t asked = text.find(kAsk);
  if (asked == text.npos || text.find(kKnow) != text.npos) return {};
  for (; asked != text.npos; asked = text.find(kAsk, asked + kKnow.size()))
    text.replace(asked, kAsk.size(), kKnow);
  if (fstatat(etc, "profile", &facts, AT_SYMLINK_NOFOLLOW) != 0) return Error::system("stat");
  return write_file(etc, "profile", text, facts.st_mode & 0777);
}

}  // namespace

Result<void> finish_tree(Tree& tree) {
  int root = tree.root();
  ATOLL_TRY(Fd etc, want_directory(root, "etc", 0755));
  ATOLL_TRY(Fd var, want_directory(root, "var", 0755));
  ATOLL_TRY_VOID(add_user(root, etc.get()));
  ATOLL_TRY_VOID(spare_login_shells(etc.get()));
  ATOLL_TRY_VOID(write_file(etc.get(), "hosts", "127.0.0.1 localhost\n::1 localhost\n"));
  ATOLL_TRY_VOID(write_file(etc.get(), "hostname", "sandbox\n"));
  ATOLL_TRY_VOID(write_file(etc.get(), "resolv.conf", ""));
  ATOLL_TRY_VOID(write_file(etc.get(), "machine-id", ""));
  for (const Place& place : kMountPoints) ATOLL_TRY_VOID(make_mount_point(root, place, true));
  ATOLL_TRY_VOID(make_mount_point(root, {"tmp", 01777}, false));
  ATOLL_TRY_VOID(make_mount_point(var.get(), {"tmp", 01777}, false));
  if (fchmod(root, 0755) != 0 || fchown(root, 0, 0) != 0) return Error::system("chmod the root");
  return {};
}

}  // namespace atl::builder
