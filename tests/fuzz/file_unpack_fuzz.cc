// The stream of kUnpack, into a real directory: whatever it holds, nothing changes outside of it.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "agent/file_unpack.h"
#include "base/check.h"
#include "base/file.h"

namespace {

using namespace atl::agent;
namespace fs = std::filesystem;

// A directory with a canary, which links of the archive can name as "../canary".
struct Scene {
  std::string path = "/tmp/atoll-unpack-fuzz-XXXXXX";
  Scene() {
    ATOLL_CHECK(mkdtemp(path.data()) != nullptr);
    atl::Fd canary(open((path + "/canary").c_str(), O_CREAT | O_WRONLY, 0600));
    ATOLL_CHECK(atl::write_all(canary.get(), "kept").ok());
  }
  ~Scene() { fs::remove_all(path); }
};

void unpack(Unpacking& unpacking, std::string_view bytes) {
  RecordReader reader;
  reader.add(bytes);
  while (true) {
    auto record = reader.next();
    if (!record.ok() || !*record) break;
    auto [type, payload] = **record;
    if (type == RecordType::kBytes && !unpacking.add(payload).ok()) return;
    if (type != RecordType::kEntry) continue;
    auto entry = decode_entry(payload);
    if (!entry.ok() || !unpacking.begin(*entry).ok()) return;
  }
  (void)unpacking.finish();
}

void check_outside(const std::string& path) {
  auto canary = atl::read_file(path + "/canary");
  ATOLL_CHECK(canary.ok() && *canary == "kept");
  struct stat status;
  ATOLL_CHECK(stat((path + "/canary").c_str(), &status) == 0);
  ATOLL_CHECK(status.st_nlink == 1 && (status.st_mode & 07777) == 0600);
  ATOLL_CHECK(stat(path.c_str(), &status) == 0 && (status.st_mode & 07777) == 0700);
  int names = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path)) ++names;
  ATOLL_CHECK(names == 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Scene scene;
  std::string tree = scene.path + "/tree";
  ATOLL_CHECK(mkdir(tree.c_str(), 0700) == 0);
  atl::Fd directory(open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  {
    Unpacking unpacking(std::move(directory));
    unpack(unpacking, {reinterpret_cast<const char*>(data), size});
  }
  check_outside(scene.path);
  fs::remove_all(tree);
  return 0;
}
