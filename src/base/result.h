// Result<T>: a value, or the Error that stood in its way. For operating failures only: bugs are
// ATOLL_CHECK, and how a user's program ended is a value, not an error.
//
// A message is lower case, without a full stop, and says what was attempted on what. Context is
// added on the way up: "launch s3k…: mount overlay: permission denied".
#pragma once

#include <errno.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace atl {

// Canonical codes; the API maps each to one HTTP status.
enum class Code : unsigned char {
  kInvalid,      // the caller's input is wrong
  kNotFound,     // no such thing
  kConflict,     // the thing is in a state that forbids it
  kDenied,       // not allowed
  kExhausted,    // a budget of the host or the tenant is used up
  kUnavailable,  // a part of the system does not answer just now
  kUnsupported,  // this host cannot do it
  kTimeout,
  kCorrupt,  // stored or received bytes are not what they must be
  kCancelled,
  kSystem,  // a system call failed; see system_errno
};

std::string_view code_name(Code code);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message, int system_errno = 0)
      : code_(code),
        system_errno_(system_errno),
        texts_(std::make_unique<Texts>(Texts{.message = std::move(message)})) {}
  Error(const Error& other)
      : code_(other.code_),
        system_errno_(other.system_errno_),
        texts_(std::make_unique<Texts>(*other.texts_)) {}
  Error& operator=(const Error& other) { return *this = Error(other); }
  Error(Error&&) = default;
  Error& operator=(Error&&) = default;
  ~Error() = default;

  // The failure of a system call, from errno as it stands now.
  static Error system(std::string_view operation) { return from_errno(operation, errno); }
  static Error from_errno(std::string_view operation, int system_errno);

  Code code() const { return code_; }
  int system_errno() const { return system_errno_; }
  const std::string& message() const { return texts_->message; }

  // A stable name for programs ("template_not_found"), and the input field it is about. Both may be
  // empty.
  const std::string& reason() const { return texts_->reason; }
  const std::string& field() const { return texts_->field; }

  // Prefixes what was being attempted.
  Error&& with_context(std::string_view context) && {
    texts_->message = std::string(context) + ": " + texts_->message;
    return std::move(*this);
  }
  Error&& with_reason(std::string_view reason) && {
    texts_->reason = reason;
    return std::move(*this);
  }
  Error&& with_field(std::string_view field) && {
    texts_->field = field;
    return std::move(*this);
  }

 private:
  struct Texts {
    std::string message;
    std::string reason = {};
    std::string field = {};
  };

  Code code_;
  int system_errno_;
  // Apart, because every Result has room for an Error, and every coroutine for many Results.
  std::unique_ptr<Texts> texts_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    ATOLL_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    ATOLL_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  // By value: a reference into a temporary would dangle in `for (auto& x : f().value())`.
  T value() && {
    ATOLL_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    ATOLL_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    ATOLL_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  void value() const { ATOLL_CHECK(ok()); }

  const Error& error() const& {
    ATOLL_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    ATOLL_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace atl

#define ATOLL_CONCAT_INNER(a, b) a##b
#define ATOLL_CONCAT(a, b) ATOLL_CONCAT_INNER(a, b)

// ATOLL_TRY(auto fd, open_file(path));   declares fd, or returns the error.
// ATOLL_TRY_VOID(write_all(fd, bytes));  for Result<void>.
// The CO_ forms are for coroutines; the expression may contain one co_await of a named operand.
#define ATOLL_TRY_IMPL(result, declaration, expression, return_keyword) \
  auto result = (expression);                                           \
  if (!result.ok()) return_keyword std::move(result).error();           \
  declaration = std::move(result).value()
#define ATOLL_TRY(declaration, ...) \
  ATOLL_TRY_IMPL(ATOLL_CONCAT(result_, __LINE__), declaration, (__VA_ARGS__), return )
#define ATOLL_CO_TRY(declaration, ...) \
  ATOLL_TRY_IMPL(ATOLL_CONCAT(result_, __LINE__), declaration, (__VA_ARGS__), co_return )
#define ATOLL_TRY_VOID_IMPL(result, expression, return_keyword) \
  do {                                                          \
    auto result = (expression);                                 \
    if (!result.ok()) return_keyword std::move(result).error(); \
  } while (false)
#define ATOLL_TRY_VOID(...) \
  ATOLL_TRY_VOID_IMPL(ATOLL_CONCAT(result_, __LINE__), (__VA_ARGS__), return )
#define ATOLL_CO_TRY_VOID(...) \
  ATOLL_TRY_VOID_IMPL(ATOLL_CONCAT(result_, __LINE__), (__VA_ARGS__), co_return )
