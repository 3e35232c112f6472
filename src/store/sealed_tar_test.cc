#include "store/sealed_tar.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/file.h"
#include "store/tar_reader.h"

namespace atl::store {
namespace {

Fd file_with(const std::string& bytes) {
  Fd fd(memfd_create("archive", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(fd.get(), bytes).ok());
  return fd;
}

std::string bytes_of(int fd) {
  EXPECT_EQ(lseek(fd, 0, SEEK_SET), 0);
  return read_all(fd, 1 << 20).value();
}

std::string sealed(const std::string& content) {
  Fd fd = file_with("");
  auto writer = SealedTarWriter::open(fd.get());
  EXPECT_TRUE(writer.ok());
  TarEntry directory;
  directory.path = "d";
  directory.type = TarEntry::Type::kDirectory;
  directory.mode = 0700;
  EXPECT_TRUE(writer->begin(directory).ok());
  TarEntry file;
  file.path = "d/file";
  file.mode = 0600;
  file.size = content.size();
  EXPECT_TRUE(writer->begin(file).ok());
  EXPECT_TRUE(writer->append(content).ok());
  EXPECT_TRUE(writer->finish().ok());
  return bytes_of(fd.get());
}

TEST(SealedTar, WhatWasWrittenIsReadAgain) {
  Fd fd = file_with(sealed("hello"));
  ASSERT_TRUE(check_seal(fd.get()).ok());
  auto reader = TarReader::open(fd.get(), TarOrigin::kSealed);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  auto first = reader->next();
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_EQ((*first)->type, TarEntry::Type::kDirectory);
  auto second = reader->next();
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->path, "d/file");
  char buffer[100];
  auto count = reader->read(buffer);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(std::string(buffer, *count), "hello");
  auto end = reader->next();
  ASSERT_TRUE(end.ok()) << end.error().message();
  EXPECT_FALSE(end->has_value());
}

TEST(SealedTar, AnyOtherUnpackerPassesOverTheSeal) {
  Fd fd = file_with(sealed("hello"));
  std::string command = "zstd -dc </proc/self/fd/" + std::to_string(fd.get()) + " | tar tf -";
  ASSERT_EQ(fcntl(fd.get(), F_SETFD, 0), 0);
  ASSERT_EQ(lseek(fd.get(), 0, SEEK_SET), 0);
  if (system("command -v zstd >/dev/null") != 0) GTEST_SKIP() << "no zstd program on this host";
  FILE* listing = popen(command.c_str(), "r");
  ASSERT_NE(listing, nullptr);
  char line[100];
  std::string names;
  while (fgets(line, sizeof line, listing) != nullptr) names += line;
  EXPECT_EQ(pclose(listing), 0);
  EXPECT_EQ(names, "d/\nd/file\n");
}

TEST(SealedTar, EveryCutIsSeen) {
  std::string whole = sealed("hello");
  for (size_t size = 0; size < whole.size(); ++size) {
    auto checked = check_seal(file_with(whole.substr(0, size)).get());
    ASSERT_FALSE(checked.ok()) << size;
    EXPECT_EQ(checked.error().code(), Code::kCorrupt);
  }
  EXPECT_FALSE(check_seal(file_with(whole + "x").get()).ok());
}

TEST(SealedTar, EveryFlippedBitIsSeen) {
  std::string whole = sealed("hello");
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      ASSERT_FALSE(check_seal(file_with(changed).get()).ok()) << at;
    }
}

TEST(SealedTar, WhatWasNotFinishedHasNoSeal) {
  Fd fd = file_with("");
  {
    auto writer = SealedTarWriter::open(fd.get());
    ASSERT_TRUE(writer.ok());
    TarEntry file;
    file.path = "file";
    file.size = 5;
    ASSERT_TRUE(writer->begin(file).ok());
    ASSERT_TRUE(writer->append("hello").ok());
  }
  EXPECT_FALSE(check_seal(fd.get()).ok());
}

TEST(SealedTar, MoreBytesThanTheSizeAreRefused) {
  Fd fd = file_with("");
  auto writer = SealedTarWriter::open(fd.get());
  ASSERT_TRUE(writer.ok());
  TarEntry file;
  file.path = "file";
  file.size = 2;
  ASSERT_TRUE(writer->begin(file).ok());
  EXPECT_FALSE(writer->append("hello").ok());
}

TEST(SealedTar, AFailedWriteIsReported) {
  auto full = open_file("/dev/full", O_WRONLY);
  ASSERT_TRUE(full.ok());
  auto writer = SealedTarWriter::open(full->get());
  ASSERT_TRUE(writer.ok());
  TarEntry file;
  file.path = "file";
  ASSERT_TRUE(writer->begin(file).ok());
  auto finished = writer->finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().system_errno(), ENOSPC);
}

}  // namespace
}  // namespace atl::store
