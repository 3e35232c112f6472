// A value in memory that is shared with the processes forked later: mmap(2), MAP_SHARED.
#pragma once

#include <sys/mman.h>

#include <type_traits>
#include <utility>

#include "base/result.h"

namespace atl::linux {

// Zeroed at first; freed here, not in the other processes.
template <typename T>
class SharedPage {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static Result<SharedPage> create() {
    void* page =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return Error::system("map shared memory");
    return SharedPage(static_cast<T*>(page));
  }
  SharedPage(SharedPage&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  SharedPage& operator=(SharedPage&&) = delete;
  ~SharedPage() {
    if (value_) munmap(value_, sizeof(T));
  }
  T* get() const { return value_; }
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  explicit SharedPage(T* value) : value_(value) {}
  T* value_;
};

}  // namespace atl::linux
