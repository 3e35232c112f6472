#include "builder/build.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "builder/stages.h"
#include "linux/capabilities.h"
#include "linux/open_resolved.h"

namespace atl::builder {
namespace {

constexpr std::chrono::minutes kMaxBuildTime{60};
constexpr std::chrono::minutes kMaxRemovalTime{10};

// To give files of a tree their owners and modes.
constexpr uint64_t kOwning = linux::capability_mask({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER});
constexpr uint64_t kReading = linux::capability_mask({CAP_DAC_OVERRIDE});

Result<void> make_owned(const std::string& path, uid_t owner, mode_t mode) {
  ATOLL_TRY_VOID(make_directory(path, 0700));
  ATOLL_TRY(Fd directory, open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (fchown(directory.get(), owner, owner) != 0) return Error::system("chown " + path);
  if (fchmod(directory.get(), mode) != 0) return Error::system("chmod " + path);
  return {};
}

class Build {
 public:
  Build(const Workshop& workshop, const std::string& name, const BuildOrder& order)
      : workshop_(workshop),
        order_(order),
        work_(workshop.work(name)),
        deadline_(std::chrono::steady_clock::now() + kMaxBuildTime) {}

  Result<KeptImage> run() {
    ATOLL_TRY_VOID(make_owned(work_, kFirstId, 0700));
    crash_point("build.begun");
    if (order_.operation == Operation::kPack) ATOLL_TRY_VOID(open_and_fetch());
    if (order_.operation == Operation::kTree)
      ATOLL_TRY_VOID(
          stage(jail(kOwning, {order_.file}), [this] { return unpack_tree(order_.file); }));
    crash_point("build.unpacked");
    ATOLL_TRY_VOID(stage(jail(kReading, {}), write_image));
    crash_point("build.written");
    ATOLL_TRY_VOID(write_all(order_.log, "#step 5/5 keeping the image\n"));
    return keep();
  }

 private:
  Jail jail(uint64_t capabilities, std::vector<int> kept) const {
    return {.capabilities = capabilities,
            .work = work_,
            .cache = "",
            .log = order_.log,
            .kept = std::move(kept),
            .deadline = deadline_};
  }

  Result<void> stage(const Jail& where, const std::function<Result<std::string>()>& body) {
    ATOLL_TRY([[maybe_unused]] std::string answer, run_in_jail(workshop_.ground, where, body));
    return {};
  }

  Result<void> open_and_fetch() {
    ATOLL_TRY(std::string wanted, run_in_jail(workshop_.ground, jail(kOwning, {order_.file}),
                                              [this] { return open_pack(order_.file); }));
    crash_point("build.opened");
    auto wants = [&wanted](char what) { return wanted.find(what) != wanted.npos; };
    if (wants(kFetchDebian)) ATOLL_TRY_VOID(fetch_packages());
    if (wants(kFetchRegistry)) ATOLL_TRY_VOID(fetch_layers());
    if (wants(kFetchGo)) ATOLL_TRY_VOID(build_go());
    crash_point("build.fetched");
    return stage(jail(kOwning, {}), unpack_source);
  }

  Result<void> fetch_packages() {
    Jail where = jail(0, {});
    where.network = Jail::Network::kHost;
    where.programs = Jail::Programs::kAny;
    where.cache = workshop_.cache();
    return stage(where, fetch_debian);
  }

  Result<void> fetch_layers() {
    Fd credentials;
    if ((order_.flags & kWithCredentials) != 0) {
      auto opened = open_file(workshop_.credentials_path, O_RDONLY | O_NOFOLLOW);
      if (!opened && opened.error().system_errno() != ENOENT) return std::move(opened).error();
      if (opened) credentials = std::move(*opened);
    }
    int file = credentials ? credentials.get() : -1;
    Jail where = jail(kReading, credentials ? std::vector<int>{file} : std::vector<int>());
    where.network = Jail::Network::kHost;
    return stage(where, [file] { return fetch_registry(file); });
  }

  // The network is for what is not executed, or was found to be the toolchain that is pinned.
  Result<void> build_go() {
    Jail fetching = jail(0, {});
    fetching.network = Jail::Network::kHost;
    ATOLL_TRY_VOID(stage(fetching, fetch_go_zips));
    ATOLL_TRY_VOID(stage(jail(kOwning, {}), unpack_go_zips));
    Jail compiling = jail(0, {});
    compiling.programs = Jail::Programs::kPinned;
    Jail resolving = compiling;
    resolving.network = Jail::Network::kHost;
    ATOLL_TRY_VOID(stage(resolving, resolve_go_modules));
    return stage(compiling, compile_go_program);
  }

  // A jail has made everything in there: no link is followed, and only a plain file will do.
  Result<KeptImage> keep() {
    ATOLL_TRY(Fd directory, open_file(work_, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    ATOLL_TRY(Fd image,
              open_at(directory.get(), "image.erofs", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat facts;
    if (fstat(image.get(), &facts) != 0) return Error::system("stat the image");
    if (!S_ISREG(facts.st_mode)) return Error(Code::kCorrupt, "mkfs.erofs made no file");
    return keep_image(workshop_.images.get(), image.get());
  }

  const Workshop& workshop_;
  const BuildOrder& order_;
  std::string work_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

Result<Workshop> Workshop::open(const std::string& state_directory) {
  Workshop workshop;
  workshop.directory = state_directory + "/builder";
  workshop.credentials_path = state_directory + "/registry-auth.json";
  ATOLL_TRY_VOID(make_owned(workshop.directory, 0, 0700));
  ATOLL_TRY_VOID(make_owned(workshop.directory + "/builds", 0, 0700));
  ATOLL_TRY_VOID(make_owned(workshop.directory + "/ground", 0, 0700));
  ATOLL_TRY_VOID(make_owned(workshop.cache(), kFirstId, 0755));
  ATOLL_TRY_VOID(make_directory(state_directory + "/images", 0755));
  ATOLL_TRY(workshop.images,
            open_file(state_directory + "/images", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  workshop.ground.mount_point = workshop.directory + "/ground";
  ATOLL_TRY(workshop.ground.host_network, open_file("/proc/self/ns/net", O_RDONLY));
  return workshop;
}

Result<KeptImage> build_image(const Workshop& workshop, const std::string& name,
                              const BuildOrder& order) {
  Result<KeptImage> image = Build(workshop, name, order).run();
  auto removed = remove_work_directory(workshop, name);
  if (!removed) log_error("left for the next start", {{"build", name}, removed.error()});
  return image;
}

// What is inside was made by jails, so a jail takes it away.
Result<void> remove_work_directory(const Workshop& workshop, const std::string& name) {
  std::string work = workshop.work(name);
  if (access(work.c_str(), F_OK) != 0) return {};
  ATOLL_TRY(Fd log, open_file("/dev/null", O_WRONLY));
  Jail where{.capabilities = kOwning,
             .work = work,
             .cache = "",
             .log = log.get(),
             .kept = {},
             .deadline = std::chrono::steady_clock::now() + kMaxRemovalTime};
  ATOLL_TRY([[maybe_unused]] std::string answer, run_in_jail(workshop.ground, where, remove_work));
  if (rmdir(work.c_str()) != 0) return Error::system("remove " + work);
  return {};
}

Result<void> remove_leftovers(const Workshop& workshop) {
  ATOLL_TRY_VOID(remove_unfinished_images(workshop.images.get()));
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir((workshop.directory + "/builds").c_str()),
                                              closedir);
  if (!entries) return Error::system("read the builder's directory");
  while (const dirent* entry = readdir(entries.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    ATOLL_TRY_VOID(remove_work_directory(workshop, name));
  }
  return {};
}

}  // namespace atl::builder
