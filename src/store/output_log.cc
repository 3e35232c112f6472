#include "store/output_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/file.h"

namespace atl::store {
namespace {

constexpr uint64_t kBlockBytes = 4096;
constexpr size_t kMaxReadBytes = 16 * 1024 * 1024;

uint64_t blocks_of(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// Of the budget: one tenant alone cannot take it from the others.
constexpr uint64_t kTenantShare = 2;

std::string dropped_name(ExecId exec) { return exec.string() + ".dropped"; }

Error no_room(const std::string& log, const std::string& why) {
  return Error(Code::kExhausted, "output log " + log + ": " + why);
}

std::string file_name(ExecId exec, OutputStream stream) {
  constexpr const char* kEndings[] = {".stdout", ".stderr", ".speech", ".marks"};
  return exec.string() + kEndings[static_cast<size_t>(stream)];
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Names in a directory but "." and "..".
Result<std::vector<std::string>> names_in(int directory) {
  ATOLL_TRY(Fd fd, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(fd.get()));
  if (!stream) return Error::system("list output logs");
  (void)fd.release();  // closed by closedir
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr && errno != 0) return Error::system("list output logs");
    if (entry == nullptr) return names;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
}

Result<uint64_t> file_bytes(int directory, const std::string& name) {
  struct stat status;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("stat output log " + name);
  return S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
}

Result<Fd> open_regular(int directory, const std::string& name, int flags) {
  // Non-blocking, so that a FIFO in its place is refused and not waited for.
  ATOLL_TRY(Fd fd, open_at(directory, name, flags | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return Error::system("stat output log " + name);
  if (!S_ISREG(status.st_mode))
    return Error(Code::kCorrupt, "output log " + name + ": not a regular file");
  return fd;
}

}  // namespace

bool OutputBudget::grow(uint64_t from_bytes, uint64_t to_bytes) {
  uint64_t more = blocks_of(to_bytes) - blocks_of(from_bytes);
  uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (more > 0 && (used > limit_bytes_ || more > limit_bytes_ - used)) return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + more, std::memory_order_relaxed));
  if (whole_ == nullptr || whole_->grow(from_bytes, to_bytes)) return true;
  used_bytes_.fetch_sub(more, std::memory_order_relaxed);
  return false;
}

void OutputBudget::release(uint64_t bytes) { shrink(bytes, 0); }

void OutputBudget::shrink(uint64_t from_bytes, uint64_t to_bytes) {
  uint64_t less = blocks_of(from_bytes) - blocks_of(to_bytes);
  uint64_t before = used_bytes_.fetch_sub(less, std::memory_order_relaxed);
  ATOLL_CHECK(before >= less);
  if (whole_ != nullptr) whole_->shrink(from_bytes, to_bytes);
}

void OutputBudget::adopt(uint64_t bytes) {
  used_bytes_.fetch_add(blocks_of(bytes), std::memory_order_relaxed);
  if (whole_ != nullptr) whole_->adopt(bytes);
}

Result<uint64_t> OutputLog::append(std::string_view bytes) {
  if (broken_) return Error(Code::kCorrupt, "output log " + name_ + ": broken by a failed append");
  struct stat status;
  if (fstat(fd_.get(), &status) != 0) return Error::system("stat output log " + name_);
  // Bytes in a removed file would be charged to the budget and never released.
  if (status.st_nlink == 0) return Error(Code::kNotFound, "output log " + name_ + ": was removed");
  uint64_t old_end = static_cast<uint64_t>(status.st_size);
  uint64_t new_end = old_end + bytes.size();
  // One tenant leaves as much as it has: however many fill the disk, the next one finds room.
  uint64_t left = budget_->is_share() ? budget_->used_bytes() : 0;
  if (!floor_->has_room(bytes.size(), left))
    return no_room(name_, "the host's disk is nearly full");
  if (!budget_->grow(old_end, new_end))
    return no_room(name_, "the budget of all logs, or the share in it of " +
                              std::to_string(budget_->limit_bytes()) + " bytes, is used up");
  auto written = write_all(fd_.get(), bytes);
  if (written) return new_end;
  return take_back(old_end, new_end, std::move(written).error());
}

Error OutputLog::take_back(uint64_t old_end, uint64_t new_end, Error cause) {
  Error error = std::move(cause).with_context("output log " + name_);
  if (ftruncate(fd_.get(), static_cast<off_t>(old_end)) == 0) {
    budget_->shrink(new_end, old_end);
    return error;
  }
  broken_ = true;
  auto end = size();
  // remove_sandbox_logs() releases what the file holds.
  if (end) budget_->shrink(new_end, *end);
  return std::move(error).with_context("cannot take back what was not acknowledged");
}

Result<std::string> OutputLog::read(uint64_t offset, size_t most) const {
  ATOLL_TRY(uint64_t end, size());
  if (offset >= end) return std::string();
  size_t wanted = std::min<uint64_t>({end - offset, most, kMaxReadBytes});
  std::string bytes(wanted, '\0');
  size_t done = 0;
  while (done < wanted) {
    ssize_t count =
        pread(fd_.get(), bytes.data() + done, wanted - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read output log " + name_);
    if (count == 0) break;  // taken back meanwhile
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

Result<uint64_t> OutputLog::size() const {
  struct stat status;
  if (fstat(fd_.get(), &status) != 0) return Error::system("stat output log " + name_);
  return static_cast<uint64_t>(status.st_size);
}

Result<OutputLogs> OutputLogs::open(const std::string& directory, uint64_t budget_bytes) {
  ATOLL_TRY_VOID(make_directory(directory, 0700));
  ATOLL_TRY(Fd fd, open_file(directory, O_RDONLY | O_DIRECTORY));
  OutputLogs logs(directory, std::move(fd), std::make_unique<Shares>(directory, budget_bytes));
  ATOLL_TRY(std::vector<SandboxId> sandboxes, logs.sandboxes());
  for (const SandboxId& sandbox : sandboxes) {
    ATOLL_TRY(uint64_t held, logs.held_by(sandbox));
    logs.shares_->all.adopt(held);
  }
  return logs;
}

Result<uint64_t> OutputLogs::held_by(const SandboxId& sandbox) const {
  auto folder = open_at(directory_.get(), sandbox.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error().code() == Code::kNotFound) return uint64_t{0};
  if (!folder) return std::move(folder).error();
  ATOLL_TRY(std::vector<std::string> names, names_in(folder->get()));
  uint64_t held = 0;
  for (const std::string& name : names) {
    ATOLL_TRY(uint64_t bytes, file_bytes(folder->get(), name));
    held += blocks_of(bytes);
  }
  return held;
}

Result<void> OutputLogs::set_owner(const SandboxId& sandbox, TenantId tenant) {
  if (tenant == kLocalTenant) return {};
  ATOLL_TRY(uint64_t held, held_by(sandbox));
  std::lock_guard lock(shares_->mutex);
  uint64_t limit = std::max<uint64_t>(shares_->all.limit_bytes() / kTenantShare, 1);
  OutputBudget& share = shares_->of_tenants.try_emplace(tenant, limit, &shares_->all).first->second;
  if (shares_->of_sandboxes.emplace(sandbox, &share).second) share.count(held);
  return {};
}

OutputBudget& OutputLogs::budget_of(const SandboxId& sandbox) {
  std::lock_guard lock(shares_->mutex);
  auto found = shares_->of_sandboxes.find(sandbox);
  return found == shares_->of_sandboxes.end() ? shares_->all : *found->second;
}

Result<OutputLog> OutputLogs::open_log(const SandboxId& sandbox, ExecId exec, OutputStream stream) {
  std::string name = sandbox.string() + "/" + file_name(exec, stream);
  if (mkdirat(directory_.get(), sandbox.string().c_str(), 0700) != 0 && errno != EEXIST)
    return Error::system("mkdir output logs " + sandbox.string());
  ATOLL_TRY(Fd folder,
            open_at(directory_.get(), sandbox.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  // O_APPEND: each write(2) goes to the end, whatever other descriptors of the file exist.
  ATOLL_TRY(Fd file,
            open_regular(folder.get(), file_name(exec, stream), O_RDWR | O_CREAT | O_APPEND));
  return OutputLog(std::move(file), std::move(name), budget_of(sandbox), shares_->floor);
}

Result<DroppedOutput> OutputLogs::dropped(const SandboxId& sandbox, ExecId exec) const {
  DroppedOutput dropped = {};
  std::string path = sandbox.string() + "/" + dropped_name(exec);
  auto text = read_file_at(directory_.get(), path);
  if (!text && text.error().code() == Code::kNotFound) return dropped;
  if (!text) return std::move(text).error().with_context("read output log");
  ByteReader reader(*text);
  for (uint64_t& bytes : dropped) bytes = reader.u64();
  // Made and not written: nothing had been acknowledged yet.
  if (!reader.done() && !text->empty())
    return Error(Code::kCorrupt, "output log " + path + ": has another length");
  return reader.done() ? dropped : DroppedOutput{};
}

Result<void> OutputLogs::set_dropped(const SandboxId& sandbox, ExecId exec,
                                     const DroppedOutput& dropped) {
  std::string id = sandbox.string();
  if (mkdirat(directory_.get(), id.c_str(), 0700) != 0 && errno != EEXIST)
    return Error::system("mkdir output logs " + id);
  ATOLL_TRY(Fd folder, open_at(directory_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  ATOLL_TRY(Fd file, open_regular(folder.get(), dropped_name(exec), O_RDWR | O_CREAT));
  ATOLL_TRY(uint64_t before, file_bytes(folder.get(), dropped_name(exec)));
  std::string text;
  ByteWriter writer(text);
  for (uint64_t bytes : dropped) writer.u64(bytes);
  ssize_t written = pwrite(file.get(), text.data(), text.size(), 0);
  if (written < 0) return Error::system("write output log " + id + "/" + dropped_name(exec));
  // A block that holds what is true is kept, whatever the budget.
  if (before == 0) budget_of(sandbox).adopt(text.size());
  if (static_cast<size_t>(written) == text.size()) return {};
  return Error::from_errno("write output log " + id + "/" + dropped_name(exec), ENOSPC);
}

Result<std::optional<OutputLog>> OutputLogs::find_log(const SandboxId& sandbox, ExecId exec,
                                                      OutputStream stream) {
  std::string name = sandbox.string() + "/" + file_name(exec, stream);
  auto folder = open_at(directory_.get(), sandbox.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error().code() == Code::kNotFound) return std::optional<OutputLog>();
  if (!folder) return std::move(folder).error();
  auto file = open_regular(folder->get(), file_name(exec, stream), O_RDONLY);
  if (!file && file.error().code() == Code::kNotFound) return std::optional<OutputLog>();
  if (!file) return std::move(file).error();
  return std::optional(
      OutputLog(std::move(*file), std::move(name), budget_of(sandbox), shares_->floor));
}

Result<void> OutputLogs::remove_sandbox_logs(const SandboxId& sandbox) {
  std::string id = sandbox.string();
  OutputBudget& budget = budget_of(sandbox);
  auto forget = [&] {
    std::lock_guard lock(shares_->mutex);
    shares_->of_sandboxes.erase(sandbox);
  };
  auto folder = open_at(directory_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error().code() == Code::kNotFound) {
    forget();
    return {};
  }
  if (!folder) return std::move(folder).error();
  ATOLL_TRY(std::vector<std::string> names, names_in(folder->get()));
  for (const std::string& name : names) {
    ATOLL_TRY(uint64_t bytes, file_bytes(folder->get(), name));
    if (unlinkat(folder->get(), name.c_str(), 0) != 0)
      return Error::system("remove output log " + id + "/" + name);
    budget.release(bytes);
  }
  if (unlinkat(directory_.get(), id.c_str(), AT_REMOVEDIR) != 0)
    return Error::system("remove output logs " + id);
  forget();
  return {};
}

Result<void> OutputLogs::clear_unlisted(const SandboxId& sandbox, Unlisted fate) {
  if (fate == Unlisted::kRemove) return remove_sandbox_logs(sandbox);
  ATOLL_TRY(uint64_t held, held_by(sandbox));
  ATOLL_TRY_VOID(set_aside(path_, sandbox.string()));
  shares_->all.release(held);
  return {};
}

Result<std::vector<SandboxId>> OutputLogs::sandboxes() const {
  ATOLL_TRY(std::vector<std::string> names, names_in(directory_.get()));
  std::vector<SandboxId> ids;
  for (const std::string& name : names)
    if (auto id = SandboxId::parse(name)) ids.push_back(*id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace atl::store
