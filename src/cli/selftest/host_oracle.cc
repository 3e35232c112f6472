#include "cli/selftest/host_oracle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/host.h"
#include "cli/state_directory.h"

namespace atl::cli::selftest {
namespace {

constexpr const char* kPrograms[] = {"atoll", "atolld", "atoll-warden", "atoll-agent"};
constexpr const char* kHostFiles[] = {"/etc/shadow", "/etc/passwd", "/etc/group", "/etc/hosts",
                                      "/etc/ld.so.preload"};

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Result<std::unique_ptr<HostOracle>> HostOracle::create(const Places& places) {
  ATOLL_TRY(CanaryProcess process, CanaryProcess::start());
  std::unique_ptr<HostOracle> oracle(new HostOracle(std::move(process)));
  char name[] = "/tmp/atoll-canary-XXXXXX";
  if (mkdtemp(name) == nullptr) return Error::system("make a directory for the canaries");
  oracle->directory_ = name;
  // Open to everybody: nothing but the walls may be in the way.
  if (chmod(name, 0777) != 0) return Error::system("chmod of the canaries' directory");
  ATOLL_TRY_VOID(oracle->make_files(places));
  ATOLL_TRY(CanaryListeners listeners, CanaryListeners::open(name));
  oracle->listeners_ = std::make_unique<CanaryListeners>(std::move(listeners));
  oracle->tell(places);
  return oracle;
}

HostOracle::~HostOracle() { (void)remove_directory(); }

Result<void> HostOracle::remove_directory() const {
  return directory_.empty() ? Result<void>() : remove_tree(directory_);
}

Result<void> HostOracle::make_files(const Places& places) {
  for (const char* name : {"file", "other"}) {
    std::string path = directory_ + "/" + name;
    ATOLL_TRY(Fd fd, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
    ATOLL_TRY_VOID(write_all(fd.get(), process_.secret() + "\n"));
    if (fchmod(fd.get(), 0666) != 0) return Error::system("chmod " + path);
    paths_.push_back(path);
  }
  ATOLL_TRY(std::string binaries, find_binaries());
  for (const char* name : kPrograms) paths_.push_back(binaries + "/" + name);
  paths_.insert(paths_.end(), std::begin(kHostFiles), std::end(kHostFiles));
  append(paths_, files_beneath(places.images()));
  append(paths_, files_beneath(places.templates()));
  paths_.push_back(places.local_key());
  return {};
}

void HostOracle::tell(const Places& places) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  environment_ = {{"ATOLL_CANARY_FILE", directory_ + "/file"},
                  {"ATOLL_CANARY_PID", std::to_string(process_.pid())},
                  {"ATOLL_CANARY_NAME", CanaryProcess::kName},
                  {"ATOLL_CANARY_PORT", std::to_string(listeners_->port())},
                  {"ATOLL_CANARY_ABSTRACT", listeners_->abstract_name()},
                  {"ATOLL_CANARY_SOCKET", listeners_->path()},
                  {"ATOLL_HOST_NAME", name},
                  {"ATOLL_STATE_DIRECTORY", places.state},
                  {"ATOLL_VICTIM_MAY_HARM", "yes"}};
}

bool HostOracle::is_leak(std::string_view output) const {
  return output.find(process_.secret()) != output.npos;
}

Result<void> HostOracle::begin() {
  ATOLL_TRY(WatchedFiles files, WatchedFiles::watch(paths_));
  files_ = std::make_unique<WatchedFiles>(std::move(files));
  ATOLL_TRY(KernelLog log, KernelLog::open());
  log_ = std::make_unique<KernelLog>(std::move(log));
  ATOLL_TRY(HostFacts facts, HostFacts::read());
  facts_ = std::make_unique<HostFacts>(std::move(facts));
  return {};
}

Result<HostChanges> HostOracle::take_changes() {
  ATOLL_CHECK(facts_ != nullptr);
  HostChanges changes{.canaries = files_->take_changes(), .of_all = log_->take_complaints()};
  if (auto harm = process_.find_harm()) changes.canaries.push_back(*harm);
  append(changes.canaries, listeners_->take_hits());
  ATOLL_TRY(FactChanges facts, facts_->take_changes());
  append(changes.canaries, std::move(facts.settings));
  append(changes.of_all, std::move(facts.mounts_and_clock));
  append(changes.canaries, find_used_up());
  return changes;
}

Result<std::vector<std::string>> HostOracle::find_other_bytes() const {
  ATOLL_CHECK(files_ != nullptr);
  return files_->find_other_bytes();
}

}  // namespace atl::cli::selftest
