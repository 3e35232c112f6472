// What the warden's tests share: a pair of directories with one tiny image, a running warden, a
// client that speaks its protocol, and a look at everything that a leak could leave.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "linux/resource_usage.h"
#include "warden/options.h"
#include "warden/protocol.h"

namespace atl::warden::testing {

// Directory of the test program, where the build puts all programs.
std::string program_path(const std::string& name);

// S and R in a fresh temporary directory; removed with everything in it.
class Directories {
 public:
  Directories();
  ~Directories();
  std::string state() const { return path_ + "/state"; }
  std::string run() const { return path_ + "/run"; }
  // Makes S/images/<digest>.erofs and gives the digest's bytes. A name is a directory, "name>to" a
  // symbolic link, "name=" a file.
  std::array<unsigned char, Digest::kBytes> make_image(std::vector<std::string> names);
  Options options() const;

 private:
  std::string path_;
};

inline const std::vector<std::string> kPlainImage = {"dev", "proc", "run", "tmp", "etc", "sys"};

// A request that parse_request() accepts.
Request launch_request(const SandboxId& id, std::array<unsigned char, Digest::kBytes> image);
Request simple_request(Operation operation, std::optional<SandboxId> id = std::nullopt);

class Client {
 public:
  static std::optional<Client> connect(const std::string& run_dir);
  bool send_bytes(const std::string& bytes);
  // Nothing when the warden closed the connection.
  std::optional<std::string> receive();
  Reply ask(const Request& request, std::vector<std::string>* ids = nullptr);

 private:
  explicit Client(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
};

// atoll-warden as a process; killed by the destructor, after which all of it is removed.
class RunningWarden {
 public:
  RunningWarden(const Directories& directories, uid_t client_uid);
  ~RunningWarden();
  RunningWarden(const RunningWarden&) = delete;
  RunningWarden& operator=(const RunningWarden&) = delete;

  pid_t pid() const { return pid_; }
  void start();
  void kill_hard();
  int terminate();  // its exit code

 private:
  const Directories& directories_;
  uid_t client_uid_;
  pid_t pid_ = -1;
};

// Runs `atoll-warden --remove-all` and gives its exit code.
int run_remove_all(const Directories& directories);

// What an isolate uses, as the warden tells.
linux::ResourceUsage usage_of(Client& client, const SandboxId& id);
// Asks the probe in an isolate.
std::string ask_probe(const std::string& run_dir, const SandboxId& id, const std::string& question);
// The value of "key: value" in a report.
std::string value_of(const std::string& report, const std::string& key);

// Every trace of isolates of this run directory, one a line, sorted. `mounts_of`: whose mount
// namespace.
std::vector<std::string> traces(const std::string& run_dir, pid_t mounts_of);

// The same, but given time to become what is expected: the warden reaps after the reply.
std::vector<std::string> settled_traces(const std::string& run_dir, pid_t mounts_of,
                                        const std::vector<std::string>& expected);
// Waits until the warden has no child: no work under way and no isolate.
void wait_until_childless(pid_t warden);

std::string read_text(const std::string& path);

}  // namespace atl::warden::testing
