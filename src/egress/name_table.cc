#include "egress/name_table.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "egress/synthetic.h"

namespace atl::egress {
namespace {

constexpr size_t kMaxTableBytes = kMaxNames * (kMaxNameBytes + 1);

std::string file_name(const SandboxId& id) { return id.string() + ".names"; }

}  // namespace

Result<NameTable> NameTable::open(int directory, SandboxId id) {
  NameTable table(directory, id);
  auto file = open_at(directory, file_name(id), O_RDWR | O_APPEND | O_NOFOLLOW);
  if (!file && file.error().system_errno() == ENOENT) return table;
  if (!file) return std::move(file).error();
  table.file_ = std::move(*file);
  ATOLL_TRY(std::string text, read_all(table.file_.get(), kMaxTableBytes));
  size_t start = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', start)) {
    auto name = HostName::parse(std::string_view(text).substr(start, end - start));
    if (!name) return Error(Code::kCorrupt, "table of names of " + id.string());
    table.numbers_.emplace(*name, static_cast<uint32_t>(table.names_.size()));
    table.names_.push_back(*name);
    start = end + 1;
  }
  // Half a line was never given out.
  if (start != text.size() && ftruncate(table.file_.get(), static_cast<off_t>(start)) != 0)
    return Error::system("cut off half a name");
  return table;
}

Result<void> NameTable::remove(int directory, SandboxId id) {
  if (unlinkat(directory, file_name(id).c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove a table of names");
  return {};
}

Result<uint32_t> NameTable::number_of(const HostName& name) {
  auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (names_.size() >= kMaxNames)
    return Error(Code::kExhausted, "too many names").with_reason("too_many_names");
  if (!file_) {
    int flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW;
    ATOLL_TRY(file_, open_at(directory_, file_name(id_), flags, 0600));
  }
  ATOLL_TRY_VOID(write_all(file_.get(), name.string() + "\n"));
  auto number = static_cast<uint32_t>(names_.size());
  names_.push_back(name);
  numbers_.emplace(name, number);
  return number;
}

std::optional<HostName> NameTable::find(const Address& address) const {
  auto number = synthetic_number(address.bytes());
  if (!number || *number >= names_.size()) return std::nullopt;
  return names_[*number];
}

Address NameTable::v4(uint32_t number) { return Address::v4(synthetic_v4(number)); }
Address NameTable::v6(uint32_t number) { return Address::v6(synthetic_v6(number)); }

}  // namespace atl::egress
