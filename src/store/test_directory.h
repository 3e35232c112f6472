// For tests: a directory of one's own, gone with all that is in it when the test ends.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/check.h"

namespace atl::store {

class TestDirectory {
 public:
  TestDirectory() {
    // In memory: hundreds of tests would wait for a disk whose syncs none of them is about.
    char name[] = "/dev/shm/atoll-store-test-XXXXXX";
    ATOLL_CHECK(mkdtemp(name) != nullptr);
    path_ = name;
  }
  TestDirectory(const TestDirectory&) = delete;
  ~TestDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    ATOLL_CHECK(!error);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace atl::store
