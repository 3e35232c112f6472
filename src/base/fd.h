// Fd: the owner of one file descriptor. Closed exactly once, by the destructor.
#pragma once

#include <utility>

namespace atl {

class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the number away; the caller closes it.
  int release() { return std::exchange(number_, -1); }
  void reset(int number = -1);

 private:
  int number_ = -1;
};

}  // namespace atl
