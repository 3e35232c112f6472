#include "warden/testing/fixture_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/file.h"
#include "linux/cgroup_tree.h"
#include "linux/unix_socket.h"
#include "warden/host.h"

namespace atl::warden::testing {
namespace {

namespace fs = std::filesystem;

int run_program(const std::vector<std::string>& arguments) {
  pid_t child = fork();
  if (child == 0) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments)
      pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    if (!getenv("ATOLL_TEST_VERBOSE")) {
      int null = open("/dev/null", O_RDWR);
      dup2(null, 1);
      dup2(null, 2);
    }
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    names.push_back(entry.path().filename());
  return names;
}

}  // namespace

std::string read_text(const std::string& path) {
  auto text = read_file(path, 1 << 20);
  return text ? *text : "";
}

std::string program_path(const std::string& name) {
  return fs::read_symlink("/proc/self/exe").parent_path() / name;
}

Directories::Directories() {
  char path[] = "/tmp/atoll-warden-test-XXXXXX";
  path_ = mkdtemp(path);
  chmod(path_.c_str(), 0755);  // the client is another user
  for (const std::string& directory : {state(), run(), state() + "/images"})
    fs::create_directory(directory);
}

Directories::~Directories() { fs::remove_all(path_); }

std::array<unsigned char, Digest::kBytes> Directories::make_image(std::vector<std::string> names) {
  std::array<unsigned char, Digest::kBytes> digest;
  fill_random(digest);
  std::string tree = path_ + "/tree";
  fs::create_directory(tree);
  for (const std::string& name : names) {
    size_t arrow = name.find('>');
    if (name.ends_with('=')) {
      EXPECT_TRUE(replace_file(tree + "/" + name.substr(0, name.size() - 1), "", 0644).ok());
    } else if (arrow == std::string::npos) {
      fs::create_directory(tree + "/" + name);
    } else {
      fs::create_symlink(name.substr(arrow + 1), tree + "/" + name.substr(0, arrow));
    }
  }
  EXPECT_TRUE(replace_file(tree + "/hello", "from the image\n", 0644).ok());
  std::string image = state() + "/images/" + to_hex(digest) + ".erofs";
  EXPECT_EQ(run_program({"mkfs.erofs", "-d0", "--all-root", image, tree}), 0);
  chmod(image.c_str(), 0644);
  fs::remove_all(tree);
  return digest;
}

Options Directories::options() const {
  return {.mode = Mode::kServe,
          .state_dir = state(),
          .run_dir = run(),
          .client_uid = 0,
          .agent = program_path("warden-test-probe"),
          .sudo = program_path("atoll-sudo"),
          .notary = program_path("atoll-notary"),
          .pool_bytes = 1ull << 30};
}

Request simple_request(Operation operation, std::optional<SandboxId> id) {
  static uint64_t next = 1;
  Request request = {};
  request.magic = kMagic;
  request.version = spoken_version();
  request.operation = operation;
  request.request_id = next++;
  if (id) id->view().copy(request.sandbox_id.data(), request.sandbox_id.size());
  return request;
}

Request launch_request(const SandboxId& id, std::array<unsigned char, Digest::kBytes> image) {
  Request request = simple_request(Operation::kLaunch, id);
  request.cpu_millis = 500;
  request.pids = 64;
  request.memory_bytes = 64 << 20;
  request.disk_bytes = 8 << 20;
  request.open_files = kDefaultOpenFiles;
  request.image = image;
  fill_random(request.nonce);
  return request;
}

std::optional<Client> Client::connect(const std::string& run_dir) {
  auto directory = open_file(run_dir, O_PATH | O_DIRECTORY);
  if (!directory) return std::nullopt;
  auto socket = linux::connect_at(directory->get(), "warden.sock", SOCK_SEQPACKET);
  if (!socket) return std::nullopt;
  return Client(std::move(*socket));
}

bool Client::send_bytes(const std::string& bytes) {
  return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
}

std::optional<std::string> Client::receive() {
  pollfd waiting = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, test_timeout_ms()) <= 0) return std::nullopt;
  std::string bytes(kMaxReplyBytes, '\0');
  ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

Reply Client::ask(const Request& request, std::vector<std::string>* ids) {
  Reply none = {};
  none.status = static_cast<Status>(999);
  if (!send_bytes({reinterpret_cast<const char*>(&request), sizeof request})) return none;
  auto message = receive();
  if (!message) return none;
  auto parsed =
      parse_reply({reinterpret_cast<const unsigned char*>(message->data()), message->size()});
  if (!parsed || parsed->reply.request_id != request.request_id) return none;
  for (uint32_t i = 0; ids && i < parsed->reply.id_count; ++i) {
    const char* text = message->data() + sizeof(Reply) + i * SandboxId::kLength;
    ids->emplace_back(text, SandboxId::kLength);
  }
  return parsed->reply;
}

RunningWarden::RunningWarden(const Directories& directories, uid_t client_uid)
    : directories_(directories), client_uid_(client_uid) {
  start();
}

void RunningWarden::start() {
  Options options = directories_.options();
  pid_ = fork();
  if (pid_ == 0) {
    std::string uid = std::to_string(client_uid_), bytes = std::to_string(options.pool_bytes);
    std::string program = program_path("atoll-warden");
    if (!getenv("ATOLL_TEST_VERBOSE")) dup2(open("/dev/null", O_RDWR), 2);
    execl(program.c_str(), "atoll-warden", "--state-dir", options.state_dir.c_str(), "--run-dir",
          options.run_dir.c_str(), "--client-uid", uid.c_str(), "--agent", options.agent.c_str(),
          "--sudo", options.sudo.c_str(), "--notary", options.notary.c_str(), "--pool-bytes",
          bytes.c_str(), nullptr);
    _exit(127);
  }
  // A socket of an earlier warden may still be there: only an answer counts.
  EXPECT_TRUE(eventually([this] { return Client::connect(directories_.run()).has_value(); }))
      << "the warden did not start";
}

RunningWarden::~RunningWarden() {
  if (pid_ > 0) terminate();
  EXPECT_EQ(run_remove_all(directories_), 0);
}

void RunningWarden::kill_hard() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int RunningWarden::terminate() {
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int run_remove_all(const Directories& directories) {
  return run_program({program_path("atoll-warden"), "--remove-all", "--state-dir",
                      directories.state(), "--run-dir", directories.run()});
}

linux::ResourceUsage usage_of(Client& client, const SandboxId& id) {
  Request request = simple_request(Operation::kMeter, id);
  EXPECT_TRUE(client.send_bytes({reinterpret_cast<const char*>(&request), sizeof request}));
  std::string answer = client.receive().value_or("");
  auto parsed = parse_reply({reinterpret_cast<const unsigned char*>(answer.data()), answer.size()});
  EXPECT_TRUE(parsed.ok());
  linux::ResourceUsage used = {};
  EXPECT_EQ(answer.size(), sizeof(Reply) + sizeof used);
  if (answer.size() == sizeof(Reply) + sizeof used)
    std::memcpy(&used, answer.data() + sizeof(Reply), sizeof used);
  return used;
}

std::string ask_probe(const std::string& run_dir, const SandboxId& id,
                      const std::string& question) {
  auto directory = open_file(run_dir + "/agents", O_PATH | O_DIRECTORY);
  if (!directory) return "no directory";
  auto socket = linux::connect_at(directory->get(), id.string(), SOCK_STREAM);
  if (!socket) return socket.error().message();
  if (!write_all(socket->get(), question).ok()) return "not sent";
  auto answer = read_all(socket->get(), 1 << 20);
  return answer ? *answer : answer.error().message();
}

std::string value_of(const std::string& report, const std::string& key) {
  size_t begin = report.starts_with(key + ":") ? 0 : report.find("\n" + key + ":");
  if (begin == std::string::npos) return "absent";
  begin = report.find(':', begin) + 1;
  size_t end = report.find('\n', begin);
  std::string value = report.substr(begin, end - begin);
  value.erase(0, value.find_first_not_of(" \t"));
  value.erase(value.find_last_not_of(" \t") + 1);
  return value;
}

std::vector<std::string> traces(const std::string& run_dir, pid_t mounts_of) {
  std::vector<std::string> found;
  auto add = [&found](const std::string& kind, const std::string& directory) {
    for (const std::string& name : names_in(directory)) found.push_back(kind + " " + name);
  };
  auto tree = linux::read_cgroups();
  EXPECT_TRUE(tree.ok());
  std::vector<std::string> hierarchies(tree->v1.begin(), tree->v1.end());
  hierarchies.push_back(tree->v2);
  for (const std::string& hierarchy : hierarchies)
    for (const std::string& name : names_in(hierarchy + "/atoll/" + run_tag(run_dir)))
      if (SandboxId::parse(name)) found.push_back("group " + hierarchy + " " + name);
  for (const std::string& name : names_in("/run/atoll-uid-ranges"))
    if (read_text("/run/atoll-uid-ranges/" + name).starts_with(run_dir + "\n"))
      found.push_back("uid range " + name);
  add("record", run_dir + "/isolates");
  add("socket", run_dir + "/agents");
  std::string root = "/proc/" + std::to_string(mounts_of) + "/root";
  add("subvolume", root + run_dir + "/pool");
  std::string mountinfo = read_text("/proc/" + std::to_string(mounts_of) + "/mountinfo");
  found.push_back("mounts " + std::to_string(std::count(mountinfo.begin(), mountinfo.end(), '\n')));
  for (const std::string& name : names_in("/sys/block")) {
    std::string backing = read_text("/sys/block/" + name + "/loop/backing_file");
    if (backing.starts_with(run_dir.substr(0, run_dir.rfind('/')))) found.push_back("loop " + name);
  }
  std::string task = std::to_string(mounts_of);
  found.push_back("children " + read_text("/proc/" + task + "/task/" + task + "/children"));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> settled_traces(const std::string& run_dir, pid_t mounts_of,
                                        const std::vector<std::string>& expected) {
  std::vector<std::string> found;
  (void)eventually([&] {
    found = traces(run_dir, mounts_of);
    return found == expected;
  });
  return found;
}

void wait_until_childless(pid_t warden) {
  std::string task = std::to_string(warden);
  std::string path = "/proc/" + task + "/task/" + task + "/children";
  EXPECT_TRUE(eventually([&] { return read_text(path).empty(); })) << read_text(path);
}

}  // namespace atl::warden::testing
