// Trees that are read in isolates of their own: sandboxes that exist only for that, and what is in
// one, entry by entry.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/files.h"
#include "sandbox/sandboxes.h"

namespace atl::sandbox {

inline constexpr char kReader[] = "root";  // who reads

// What is asked for, without a network, in nobody's list; gone after `time` at the latest, or at
// the next start.
Task<Result<std::shared_ptr<Sandbox>>> open_reader(Sandboxes& sandboxes, store::TenantId tenant,
                                                   CreateSandbox request,
                                                   std::chrono::minutes time);
Task<void> close_reader(Sandboxes& sandboxes, std::shared_ptr<Sandbox> reader);

// All entries beneath a path in the order of their paths, one after the other. Their times are
// those of any change.
class TreeSide {
 public:
  static Task<Result<TreeSide>> open(std::shared_ptr<Sandbox> sandbox, std::string path);

  // Nothing at the end.
  const std::optional<FileEntry>& entry() const { return entry_; }
  Task<Result<void>> advance();

 private:
  explicit TreeSide(std::unique_ptr<FileCall> call) : call_(std::move(call)) {}
  std::unique_ptr<FileCall> call_;
  std::optional<FileEntry> entry_;
  uint64_t count_ = 0;
};

// All but their bytes and times.
bool same_kind(const FileEntry& before, const FileEntry& after);

}  // namespace atl::sandbox
