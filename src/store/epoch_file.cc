#include "store/epoch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "base/file.h"
#include "store/sha256.h"

namespace atl::store {
namespace {

constexpr size_t kPlaces = 2;
constexpr size_t kPlaceBytes = 4096;  // a block of its own: they are not lost together
constexpr size_t kFileBytes = kPlaces * kPlaceBytes;
constexpr size_t kIdentityLetters = 32;
constexpr size_t kMaxBootLetters = 64;

struct Numbered {
  uint64_t number = 0;
  EpochMark mark;
};

std::string encode(const Numbered& numbered) {
  const Epoch& epoch = numbered.mark.epoch;
  std::string boot = numbered.mark.boot.empty() ? "-" : numbered.mark.boot;
  std::string text = "atoll-epoch 1 " + std::to_string(numbered.number) + " " + epoch.identity +
                     " " + std::to_string(epoch.synced) + " " + std::to_string(epoch.running) +
                     " " + std::to_string(numbered.mark.stored) + " " + boot + " ";
  text += sha256(text).string() + "\n";
  return text;
}

std::optional<Numbered> decode(std::string_view place) {
  std::string line(place.substr(0, place.find('\n')));
  size_t space = line.rfind(' ');
  if (space == line.npos) return std::nullopt;
  auto sum = Digest::parse(line.substr(space + 1));
  if (!sum || *sum != sha256(line.substr(0, space + 1))) return std::nullopt;
  std::istringstream words(line);
  std::string name;
  int version = 0;
  Numbered found;
  Epoch& epoch = found.mark.epoch;
  words >> name >> version >> found.number >> epoch.identity >> epoch.synced >> epoch.running >>
      found.mark.stored >> found.mark.boot;
  if (!words || name != "atoll-epoch" || version != 1 ||
      epoch.identity.size() != kIdentityLetters || found.mark.boot.size() > kMaxBootLetters)
    return std::nullopt;
  if (found.mark.boot == "-") found.mark.boot.clear();
  return found;
}

Result<Numbered> newest(int fd, const std::string& path) {
  std::optional<Numbered> best;
  for (size_t place = 0; place < kPlaces; ++place) {
    std::array<char, kPlaceBytes> bytes{};
    ssize_t count = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(place * kPlaceBytes));
    if (count < 0) return Error::system("read " + path);
    auto found = decode({bytes.data(), static_cast<size_t>(count)});
    if (found && (!best || found->number > best->number)) best = std::move(found);
  }
  if (!best) return Error(Code::kCorrupt, "the epoch file " + path + " is damaged");
  return std::move(*best);
}

}  // namespace

Result<std::optional<EpochMark>> EpochFile::read(const std::string& path) {
  auto fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!fd && fd.error().system_errno() == ENOENT) return std::optional<EpochMark>();
  if (!fd) return std::move(fd).error();
  ATOLL_TRY(Numbered found, newest(fd->get(), path));
  return std::optional(std::move(found.mark));
}

std::string EpochFile::bytes_of(const EpochMark& mark) {
  std::string text = encode({1, mark});
  text.resize(kFileBytes);
  return text;
}

Result<EpochFile> EpochFile::create(const std::string& path, const EpochMark& mark) {
  ATOLL_TRY_VOID(replace_file(path, bytes_of(mark), 0600));
  return open(path);
}

Result<EpochFile> EpochFile::open(const std::string& path) {
  ATOLL_TRY(Fd fd, open_file(path, O_RDWR | O_NOFOLLOW));
  ATOLL_TRY(Numbered found, newest(fd.get(), path));
  return EpochFile(std::move(fd), found.number);
}

Result<void> EpochFile::write(const EpochMark& mark) {
  std::string text = encode({number_ + 1, mark});
  auto offset = static_cast<off_t>((number_ + 1) % kPlaces * kPlaceBytes);
  ssize_t count = pwrite(fd_.get(), text.data(), text.size(), offset);
  if (count != static_cast<ssize_t>(text.size())) return Error::system("write the epoch file");
  ++number_;
  return {};
}

}  // namespace atl::store
