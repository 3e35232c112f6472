#include "cli/tar.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

std::string archive_of(const std::string& directory) {
  auto writer = TarWriter::open(directory);
  EXPECT_TRUE(writer.ok());
  std::string bytes;
  std::string piece(777, '\0');
  for (;;) {
    auto count = writer->read(piece);
    EXPECT_TRUE(count.ok()) << (count.ok() ? "" : count.error().message());
    if (!count.ok() || *count == 0) return bytes;
    bytes.append(piece, 0, *count);
  }
}

struct Unpacked {
  Result<void> result;
  uint64_t files;
  uint64_t skipped;
};

Unpacked unpack(const std::string& archive, const std::string& directory, size_t piece = 1000) {
  auto tree = LocalTree::open(directory);
  EXPECT_TRUE(tree.ok());
  TarReader reader(*tree);
  Result<void> result;
  for (size_t at = 0; at < archive.size() && result.ok(); at += piece)
    result = reader.feed(std::string_view(archive).substr(at, piece));
  if (result.ok()) result = reader.finish();
  return {std::move(result), reader.files(), reader.skipped()};
}

TEST(Tar, WhatIsPackedComesOutAgain) {
  TempDir source, target;
  std::string deep = source / std::string(60, 'd');
  std::string long_name = deep + "/" + std::string(200, 'n');
  std::filesystem::create_directories(deep + "/empty");
  write_text(long_name, "long");
  write_text(source / "empty file", "");
  write_text(source / "exact", std::string(1024, 'e'));
  write_text(source / "tool", "#!/bin/sh\n");
  ASSERT_EQ(chmod((source / "tool").c_str(), 0755), 0);
  ASSERT_EQ(symlink("tool", (source / "link").c_str()), 0);
  std::string archive = archive_of(source.path());
  EXPECT_EQ(archive.size() % 512, 0u);
  for (size_t piece : {1, 511, 512, 100'000}) {
    auto done = unpack(archive, target.path(), piece);
    ASSERT_TRUE(done.result.ok()) << done.result.error().message();
    EXPECT_EQ(done.files, 4u);
    EXPECT_EQ(done.skipped, 0u);
    EXPECT_EQ(read_text(target / (std::string(60, 'd') + "/" + std::string(200, 'n'))), "long");
    EXPECT_EQ(read_text(target / "exact"), std::string(1024, 'e'));
    EXPECT_TRUE(std::filesystem::is_directory(target / (std::string(60, 'd') + "/empty")));
    EXPECT_EQ(std::filesystem::file_size(target / "empty file"), 0u);
    EXPECT_EQ(std::filesystem::read_symlink(target / "link"), "tool");
    EXPECT_EQ(access((target / "tool").c_str(), X_OK), 0);
  }
}

TEST(Tar, TheRealTarReadsAndWritesTheSame) {
  TempDir source, target, again;
  write_text(source / std::string(150, 'n'), "long");
  write_text(source / "short", std::string(513, 's'));
  std::ofstream(again / "a.tar", std::ios::binary) << archive_of(source.path());
  ASSERT_EQ(system(("tar -xf " + (again / "a.tar") + " -C " + target.path()).c_str()), 0);
  EXPECT_EQ(read_text(target / std::string(150, 'n')), "long");
  for (const char* format : {"gnu", "pax", "ustar"}) {
    TempDir back;
    std::string create = "tar --format=" + std::string(format) + " -cf " + (again / "b.tar") +
                         " -C " + source.path() + " short";
    ASSERT_EQ(system(create.c_str()), 0);
    auto done = unpack(read_text(again / "b.tar"), back.path());
    ASSERT_TRUE(done.result.ok()) << format << " " << done.result.error().message();
    EXPECT_EQ(read_text(back / "short"), std::string(513, 's'));
  }
}

// A header of one entry with the right sum.
std::string header(char type, const std::string& name, const std::string& link = "",
                   const std::string& size = "00000000000") {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000644");
  block.replace(124, size.size(), size);
  block[156] = type;
  block.replace(157, link.size(), link);
  block.replace(257, 5, "ustar");
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 7, digits, 7);
  return block;
}

const std::string kEnd(1024, '\0');

TEST(Tar, NothingIsMadeOutside) {
  TempDir parent;
  std::string inside = parent / "inside";
  write_text(parent / "canary", "alive");
  for (const std::string& archive :
       {header('0', "../canary"), header('0', parent / "canary"), header('0', "a/../../canary"),
        header('5', "../made"), header('0', ".."), header('0', "")}) {
    auto done = unpack(archive + kEnd, inside);
    EXPECT_EQ(done.result.error().code(), Code::kDenied);
  }
  // Through links: those that lead out are left out, and none is followed.
  auto out = unpack(header('2', "out", "..") + header('0', "out/canary") + kEnd, inside);
  EXPECT_EQ(out.skipped, 1u);
  EXPECT_TRUE(out.result.ok());
  ASSERT_EQ(symlink(parent.path().c_str(), (inside + "/planted").c_str()), 0);
  EXPECT_FALSE(unpack(header('0', "planted/canary") + kEnd, inside).result.ok());
  EXPECT_FALSE(unpack(header('5', "planted/made") + kEnd, inside).result.ok());
  ASSERT_EQ(symlink((parent / "canary").c_str(), (inside + "/file").c_str()), 0);
  EXPECT_TRUE(unpack(header('0', "file") + kEnd, inside).result.ok());
  EXPECT_EQ(read_text(parent / "canary"), "alive");
  EXPECT_FALSE(std::filesystem::exists(parent / "made"));
}

TEST(Tar, DevicesAndHardLinksAreLeftOut) {
  TempDir target;
  auto done = unpack(header('3', "device") + header('1', "hard", "/etc/passwd") +
                         header('6', "pipe") + header('2', "abs", "/etc/passwd") + kEnd,
                     target.path());
  EXPECT_TRUE(done.result.ok());
  EXPECT_EQ(done.skipped, 4u);
  EXPECT_TRUE(std::filesystem::is_empty(target.path()));
}

TEST(Tar, RefusesWhatIsNoArchive) {
  TempDir target;
  std::string wrong_sum = header('0', "a");
  wrong_sum[0] = 'b';
  std::string record = header('x', "pax", "", "00000000006") + "99 a=b" + std::string(506, '\0');
  for (const std::string& archive :
       {std::string("not a tar"), std::string(512, 'x'), wrong_sum + kEnd, header('0', "a"),
        header('0', "a", "", "0000000000x") + kEnd, record + header('0', "a") + kEnd,
        header('x', "pax", "", "77777777777") + kEnd})
    EXPECT_EQ(unpack(archive, target.path()).result.error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace atl::cli
