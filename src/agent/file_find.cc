#include "agent/file_find.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "agent/file_entry.h"
#include "agent/file_lines.h"
#include "agent/file_list.h"
#include "agent/file_path.h"
#include "agent/file_read.h"
#include "agent/file_walk.h"
#include "base/clock.h"
#include "base/glob.h"

namespace atl::agent {
namespace {

constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint64_t kMaxSearchedBytes = 4ull << 30;
constexpr auto kMaxTime = std::chrono::seconds(30);
constexpr size_t kReadBytes = 64 * 1024;

class Search {
 public:
  Search(const FileRequest& request, std::optional<Glob> glob, FileWire& wire)
      : request_(request),
        base_(trimmed(request.path)),
        glob_(std::move(glob)),
        wire_(wire),
        left_(effective_limit(request)) {}

  Result<void> run(FileWalk walk);
  bool cut_short() const { return cut_short_; }

 private:
  Result<void> look_at(const Walked& walked);
  Result<void> look_into(const Walked& walked, const FileEntry& entry);
  Result<void> tell(const FileMatch& match);
  bool fits(const Walked& walked) const;
  bool used_up() const { return std::chrono::steady_clock::now() > deadline_; }

  const FileRequest& request_;
  std::string_view base_;
  std::optional<Glob> glob_;
  FileWire& wire_;
  uint32_t left_;
  uint64_t bytes_ = 0;
  SteadyTime deadline_ = std::chrono::steady_clock::now() + kMaxTime;
  bool cut_short_ = false;
};

Result<void> Search::run(FileWalk walk) {
  for (uint64_t entries = 0;; ++entries) {
    ATOLL_TRY(auto walked, walk.next());
    if (!walked) return {};
    cut_short_ = cut_short_ || entries == kMaxEntries || used_up();
    if (cut_short_) return {};
    ATOLL_TRY_VOID(look_at(*walked));
    // What was found is worth having while the search goes on.
    if (entries % 1024 == 0) ATOLL_TRY_VOID(wire_.flush());
  }
}

bool Search::fits(const Walked& walked) const {
  if (!glob_) return true;
  return glob_->matches(glob_->has_slash() ? walked.path : walked.name);
}

Result<void> Search::look_at(const Walked& walked) {
  if (!fits(walked)) return {};
  std::string path = join_path(base_, walked.path);
  if (path.size() > kMaxPathBytes) return {};
  auto entry = read_entry(walked.directory, walked.name, std::move(path));
  if (!entry) return {};  // gone meanwhile
  if (request_.text.empty()) return tell({std::move(*entry), 0, ""});
  if (entry->type != EntryType::kFile) return {};
  return look_into(walked, *entry);
}

Result<void> Search::look_into(const Walked& walked, const FileEntry& entry) {
  auto file = open_regular(walked.directory, walked.name, O_NOFOLLOW);
  if (!file) return {};  // not for this user, or gone meanwhile
  Result<void> told;
  LineSearch search(request_.text, [&](const LineSearch::Line& line) {
    told = tell({entry, line.number, std::string(line.text)});
    return told.ok() && !cut_short_;
  });
  char bytes[kReadBytes];
  while (true) {
    ssize_t count = read(file->get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    bytes_ += static_cast<uint64_t>(count);
    if (bytes_ > kMaxSearchedBytes || used_up()) {
      cut_short_ = true;
      return told;
    }
    if (!search.add({bytes, static_cast<size_t>(count)})) return told;
  }
  search.finish();
  return told;
}

Result<void> Search::tell(const FileMatch& match) {
  if (left_ == 0) {
    cut_short_ = true;
    return {};
  }
  --left_;
  return wire_.send(encode_record(match));
}

}  // namespace

Result<uint8_t> find_files(const FileRequest& request, FileWire& wire) {
  if (request.text.find('\n') != request.text.npos) return file_error(EINVAL, "text of one line");
  std::optional<Glob> glob;
  if (!request.target.empty()) {
    ATOLL_TRY(glob, Glob::parse(request.target));
  }
  ATOLL_TRY(Fd root, open_directory(request.path));
  WalkOptions options;
  options.depth = request.depth;
  Search search(request, std::move(glob), wire);
  ATOLL_TRY_VOID(search.run(FileWalk(std::move(root), std::move(options))));
  return search.cut_short() ? bit(DoneFlag::kCutShort) : uint8_t{0};
}

}  // namespace atl::agent
