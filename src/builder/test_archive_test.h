// Archives that tests make, as hostile as they like, and a directory to unpack them in.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "builder/tree.h"

namespace atl::builder {

struct TestEntry {
  std::string path;
  mode_t type = AE_IFREG;
  std::string content = {};
  std::string link = {};  // of a symbolic link
  std::string hard_link = {};
  unsigned mode = 0644;
  int64_t uid = 0, gid = 0;
  int64_t modified = 1'600'000'000;
};

// Takes the writer, whose format is set.
inline Fd write_archive(archive* writer, const std::vector<TestEntry>& entries) {
  Fd file(memfd_create("archive", MFD_CLOEXEC));
  EXPECT_EQ(archive_write_open_fd(writer, file.get()), ARCHIVE_OK);
  for (const TestEntry& one : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, one.path.c_str());
    archive_entry_set_filetype(entry, one.type);
    archive_entry_set_perm(entry, static_cast<mode_t>(one.mode));
    archive_entry_set_uid(entry, one.uid);
    archive_entry_set_gid(entry, one.gid);
    archive_entry_set_mtime(entry, one.modified, 0);
    if (!one.link.empty()) archive_entry_set_symlink(entry, one.link.c_str());
    if (!one.hard_link.empty()) archive_entry_set_hardlink(entry, one.hard_link.c_str());
    if (one.type == AE_IFREG && one.hard_link.empty())
      archive_entry_set_size(entry, static_cast<int64_t>(one.content.size()));
    EXPECT_GE(archive_write_header(writer, entry), ARCHIVE_WARN) << one.path;
    if (!one.content.empty()) archive_write_data(writer, one.content.data(), one.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  return file;
}

inline Fd make_archive(const std::vector<TestEntry>& entries, bool compressed = false) {
  archive* writer = archive_write_new();
  archive_write_set_format_pax(writer);
  if (compressed) archive_write_add_filter_gzip(writer);
  return write_archive(writer, entries);
}

inline Fd make_zip(const std::vector<TestEntry>& entries) {
  archive* writer = archive_write_new();
  archive_write_set_format_zip(writer);
  return write_archive(writer, entries);
}

class TreeTest : public testing::Test {
 protected:
  TreeTest() {
    char name[] = "/tmp/atoll-tree-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    // What a way out of the tree would reach.
    EXPECT_EQ(system(("echo secret >" + directory_ + "/outside").c_str()), 0);
  }
  ~TreeTest() override { std::filesystem::remove_all(directory_); }

  Result<void> unpack(const std::vector<TestEntry>& entries, Tree::Kind kind = Tree::Kind::kPlain) {
    Fd file = make_archive(entries);
    ATOLL_TRY(Tree tree, Tree::open(root()));
    if (kind == Tree::Kind::kLayer) {
      UnpackBudget looked;
      ATOLL_TRY(ArchiveFile hiding, ArchiveFile::open(file.get(), looked));
      ATOLL_TRY_VOID(tree.apply_whiteouts(hiding));
    }
    ATOLL_TRY(ArchiveFile archive, ArchiveFile::open(file.get(), budget_));
    ATOLL_TRY_VOID(tree.add(archive, kind, {}));
    left_out_ = tree.left_out();
    return tree.settle_times();
  }
  std::string root() const { return directory_ + "/root"; }
  std::string content(const std::string& path) const {
    FILE* file = fopen((root() + "/" + path).c_str(), "r");
    if (file == nullptr) return "(absent)";
    char text[4096];
    size_t count = fread(text, 1, sizeof text, file);
    fclose(file);
    return {text, count};
  }
  bool outside_is_intact() const {
    return std::filesystem::file_size(directory_ + "/outside") == 7 &&
           std::distance(std::filesystem::directory_iterator(directory_),
                         std::filesystem::directory_iterator()) <= 2;
  }

  std::string directory_;
  UnpackBudget budget_;
  uint64_t left_out_ = 0;
};

}  // namespace atl::builder
