#include "sandbox/file_call.h"

#include <limits.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"
#include "sandbox/pause.h"

namespace atl::sandbox {

namespace {

struct Meaning {
  int system_errno;
  Code code;
  std::string_view reason;
};

constexpr Meaning kMeanings[] = {
    {ENOENT, Code::kNotFound, "file_not_found"},
    {EEXIST, Code::kConflict, "exists"},
    {ENOTDIR, Code::kConflict, "not_directory"},
    {EISDIR, Code::kConflict, "is_directory"},
    {ENOTEMPTY, Code::kConflict, "not_empty"},
    {EACCES, Code::kDenied, "permission_denied"},
    {EPERM, Code::kDenied, "permission_denied"},
    {EROFS, Code::kDenied, "permission_denied"},
    {ENOSPC, Code::kExhausted, "disk_limit"},
    {EDQUOT, Code::kExhausted, "disk_limit"},
    {EFBIG, Code::kExhausted, "disk_limit"},
    {ENAMETOOLONG, Code::kInvalid, "name_too_long"},
    {ELOOP, Code::kConflict, "too_many_links"},
    {EXDEV, Code::kConflict, "other_file_system"},
    {ENXIO, Code::kConflict, "not_regular"},
    {EOPNOTSUPP, Code::kConflict, "not_regular"},
    {EBUSY, Code::kConflict, "file_busy"},
    {ETXTBSY, Code::kConflict, "file_busy"},
    {ENODATA, Code::kNotFound, "attribute_not_found"},
    {EINVAL, Code::kInvalid, "invalid_file_request"},
    {E2BIG, Code::kInvalid, "invalid_file_request"},
    {ERANGE, Code::kInvalid, "invalid_file_request"},
    {ETIMEDOUT, Code::kTimeout, "file_timeout"},
    {ECONNREFUSED, Code::kUnavailable, "port_not_listening"},
};

// A silent worker is the sandbox's matter, not a failure of the platform.
Error named(Error error) {
  if (error.code() == Code::kTimeout && error.reason().empty())
    return std::move(error).with_reason("file_timeout");
  return error;
}

}  // namespace

Error file_error(int system_errno, std::string_view about) {
  Error plain = Error::from_errno(about, system_errno);
  for (const Meaning& meaning : kMeanings)
    if (meaning.system_errno == system_errno)
      return Error(meaning.code, plain.message(), system_errno).with_reason(meaning.reason);
  return Error(Code::kUnavailable, plain.message(), system_errno)
      .with_reason("file_operation_failed");
}

std::string shown(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  for (unsigned char byte : bytes)
    text += byte < 0x80 ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
  return text;
}

Error bad_answer(std::string_view what) {
  return Error(Code::kUnavailable, "the answer from inside the sandbox " + std::string(what))
      .with_reason("bad_answer");
}

bool is_clean_relative(std::string_view path) {
  if (path.empty() || path.size() >= PATH_MAX || path.find('\0') != path.npos) return false;
  while (true) {
    size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > NAME_MAX) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Result<void> check_path(std::string_view path) {
  if (path == "/" || (path.starts_with('/') && is_clean_relative(path.substr(1)))) return {};
  if (path.size() >= PATH_MAX)
    return Error(Code::kInvalid, "the path is too long").with_reason("name_too_long");
  return Error(Code::kInvalid,
               "the path is not absolute, or has an empty, `.`, `..` or over-long part")
      .with_reason("invalid_path");
}

bool is_beneath(std::string_view root, std::string_view path) {
  if (root != "/" && !path.starts_with(root)) return false;
  if (root != "/") path.remove_prefix(root.size());
  return path.starts_with('/') && is_clean_relative(path.substr(1));
}

Task<Result<std::unique_ptr<FileCall>>> FileCall::open(std::shared_ptr<Sandbox> sandbox,
                                                       agent::FileRequest request) {
  ATOLL_CO_TRY_VOID(check_path(request.path));
  if (request.operation == agent::FileOperation::kMove)
    ATOLL_CO_TRY_VOID(check_path(request.target));
  ATOLL_CO_TRY_VOID(co_await Pause::wake(sandbox));
  ATOLL_CO_TRY(std::unique_ptr<Channel> channel, sandbox->channels().open(request));
  co_return std::unique_ptr<FileCall>(new FileCall(sandbox, std::move(channel)));
}

Task<Result<std::optional<agent::FileRecord>>> FileCall::next(SteadyTime deadline) {
  if (std::chrono::steady_clock::now() > deadline_)
    co_return Error(Code::kTimeout, "the operation takes too long").with_reason("file_timeout");
  while (!done_) {
    auto record = reader_.next();
    if (!record) co_return bad_answer("is malformed");
    if (!*record) {
      auto bytes = co_await channel_->read(deadline);
      if (!bytes && bytes.error().system_errno() != 0)
        co_return file_error(bytes.error().system_errno(), bytes.error().message());
      if (!bytes) co_return named(std::move(bytes).error());
      if (bytes->empty()) co_return bad_answer("ended in the middle");
      reader_.add(*bytes);
      continue;
    }
    if ((*record)->type == agent::RecordType::kDone) {
      auto flags = agent::decode_done((*record)->payload);
      if (!flags) co_return bad_answer("is malformed");
      done_ = *flags;
    } else if ((*record)->type == agent::RecordType::kFailed) {
      auto failure = agent::decode_failure((*record)->payload);
      if (!failure) co_return bad_answer("is malformed");
      std::string about = failure->operation;
      if (!failure->path.empty()) about += " " + shown(failure->path);
      co_return file_error(failure->system_errno, about);
    } else {
      co_return *record;
    }
  }
  co_return std::optional<agent::FileRecord>();
}

Task<Result<agent::FileRecord>> FileCall::expect(agent::RecordType type) {
  SteadyTime deadline = patience();
  ATOLL_CO_TRY(auto record, co_await next(deadline));
  if (!record || record->type != type) co_return bad_answer("has another record than asked for");
  co_return *record;
}

Task<Result<uint8_t>> FileCall::expect_done() {
  SteadyTime deadline = patience();
  ATOLL_CO_TRY(auto record, co_await next(deadline));
  if (record) co_return bad_answer("goes on after its end");
  co_return *done_;
}

Task<Result<void>> FileCall::send(std::string record) {
  SteadyTime deadline = patience();
  auto sent = co_await channel_->write(record, deadline);
  if (sent) co_return sent;
  if (sent.error().code() == Code::kTimeout) co_return named(std::move(sent).error());
  // The worker gave up while it was fed: what it said last is why.
  auto last = co_await next(deadline);
  if (!last) co_return std::move(last).error();
  if (sent.error().system_errno() != 0)
    co_return file_error(sent.error().system_errno(), sent.error().message());
  co_return bad_answer("ended before it had taken everything");
}

}  // namespace atl::sandbox
