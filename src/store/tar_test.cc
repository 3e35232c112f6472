#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/file.h"
#include "store/tar_reader.h"
#include "store/tar_writer.h"

namespace atl::store {
namespace {

Fd file_with(const std::string& bytes) {
  Fd fd(memfd_create("archive", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(fd.get(), bytes).ok());
  return fd;
}

std::string packed(const std::vector<std::pair<TarEntry, std::string>>& entries) {
  std::string text;
  for (const auto& [entry, bytes] : entries)
    text += tar_header(entry) + bytes + tar_padding(bytes.size());
  return text + tar_end();
}

TEST(Tar, WhatWasWrittenIsReadAgain) {
  std::string long_name = std::string(120, 'd') + "/" + std::string(200, 'f');
  TarEntry file{long_name, TarEntry::Type::kFile,     0640, 1000, 1000,
                5,         1'700'000'000'123'456'789, ""};
  TarEntry directory{"sub", TarEntry::Type::kDirectory, 0755, 0, 0, 0, 0, ""};
  TarEntry link{"sub/ä\n", TarEntry::Type::kSymlink, 0777, 0, 0, 0, 0, "/usr/bin/" + long_name};
  TarEntry hard{"sub/hard", TarEntry::Type::kHardLink, 0640, 0, 0, 0, 0, long_name};
  TarEntry raw{"\xff\xfe", TarEntry::Type::kFile, 0600, 0, 0, 1, 0, ""};
  Fd fd = file_with(packed({{file, "hello"}, {directory, ""}, {link, ""}, {hard, ""}, {raw, "x"}}));
  auto reader = TarReader::open(fd.get());
  ASSERT_TRUE(reader.ok());
  char buffer[100];

  auto first = reader->next();
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ((*first)->path, long_name);
  EXPECT_EQ((*first)->mode, 0640u);
  EXPECT_EQ((*first)->modified_ns, 1'700'000'000'123'456'789);
  auto count = reader->read(buffer);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(std::string(buffer, *count), "hello");
  EXPECT_EQ(*reader->read(buffer), 0u);

  auto second = reader->next();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->type, TarEntry::Type::kDirectory);
  auto third = reader->next();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ((*third)->path, "sub/ä\n");
  EXPECT_EQ((*third)->target, "/usr/bin/" + long_name);
  auto fourth = reader->next();
  ASSERT_TRUE(fourth.ok());
  EXPECT_EQ((*fourth)->type, TarEntry::Type::kHardLink);
  EXPECT_EQ((*fourth)->target, long_name);
  auto fifth = reader->next();
  ASSERT_TRUE(fifth.ok()) << fifth.error().message();
  EXPECT_EQ((*fifth)->path, "\xff\xfe");
  ASSERT_EQ(*reader->read(buffer), 1u);
  auto end = reader->next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST(Tar, WhatIsNoArchiveIsRefused) {
  for (const std::string& bytes : {std::string(""), std::string("hello"), std::string(5000, 'x'),
                                   std::string("PK\x03\x04") + std::string(1000, 'z')}) {
    Fd fd = file_with(bytes);
    auto reader = TarReader::open(fd.get());
    if (!reader) {
      EXPECT_EQ(reader.error().reason(), "invalid_archive");
      continue;
    }
    auto entry = reader->next();
    EXPECT_TRUE(!entry.ok() || !entry->has_value());
  }
}

TEST(Tar, ACutArchiveIsRefused) {
  TarEntry file{"a", TarEntry::Type::kFile, 0644, 0, 0, 10'000, 0, ""};
  std::string whole = packed({{file, std::string(10'000, 'x')}});
  Fd fd = file_with(whole.substr(0, 4000));
  auto reader = TarReader::open(fd.get());
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(reader->next().ok());
  std::string buffer(20'000, '\0');
  std::span<char> room(buffer);
  Result<size_t> count = size_t{1};
  while (count.ok() && *count > 0) count = reader->read(room);
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().reason(), "invalid_archive");
}

TEST(Tar, SetuidIsLeftOut) {
  TarEntry file{"a", TarEntry::Type::kFile, 06755, 0, 0, 0, 0, ""};
  Fd fd = file_with(packed({{file, ""}}));
  auto reader = TarReader::open(fd.get());
  ASSERT_TRUE(reader.ok());
  auto entry = reader->next();
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ((*entry)->mode, 0755u);
}

}  // namespace
}  // namespace atl::store
