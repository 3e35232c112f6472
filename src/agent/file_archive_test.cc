// Trees as streams: kPack and kUnpack, by the real agent on the real kernel.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/channel_fixture_test.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

class FileArchive : public FileTest {
 protected:
  FileAnswer unpack(const std::string& records, uint32_t flags = bit(FileFlag::kParents)) {
    return channels_.run(file_request(FileOperation::kUnpack, at("out"), flags),
                         records + encode_done());
  }
  unsigned mode_of(const std::string& name) const {
    struct stat status;
    return lstat(at(name).c_str(), &status) == 0 ? status.st_mode & 07777 : ~0u;
  }
};
ATOLL_FILE_TESTS(FileArchive);

FileEntry entry(std::string path, EntryType type, uint32_t mode) {
  FileEntry made;
  made.path = std::move(path);
  made.type = type;
  made.mode = mode;
  made.modified_ns = 1'600'000'000'123'456'789;
  return made;
}
std::string file(std::string path, std::string_view bytes, uint32_t mode = 0644) {
  FileEntry made = entry(std::move(path), EntryType::kFile, mode);
  made.size = bytes.size();
  std::string records = encode_record(made);
  if (!bytes.empty()) records += encode_record(RecordType::kBytes, bytes);
  return records;
}
std::string directory(std::string path, uint32_t mode = 0755) {
  return encode_record(entry(std::move(path), EntryType::kDirectory, mode));
}
std::string symlink_to(std::string path, std::string target) {
  FileEntry made = entry(std::move(path), EntryType::kSymlink, 0777);
  made.target = std::move(target);
  return encode_record(made);
}
std::string hard_link(std::string path, std::string target) {
  FileEntry made = entry(std::move(path), EntryType::kFile, 0644);
  made.hard_link = std::move(target);
  return encode_record(made);
}

TEST_P(FileArchive, UnpackMakesTheTree) {
  FileAnswer answer = unpack(directory("./") + directory("closed/", 0555) + file("closed/a", "1") +
                             file("x/y/b", "22", 06755) + symlink_to("x/link", "../../etc") +
                             hard_link("x/c", "x/y/b") + file("closed/a", "again", 0600) +
                             encode_record(entry("device", EntryType::kOther, 0666)));
  ASSERT_EQ(answer.error(), 0) << answer.failure->path << " " << answer.failure->operation;
  EXPECT_EQ(tree(), (Paths{"out", "out/closed", "out/closed/a", "out/x", "out/x/c", "out/x/link",
                           "out/x/y", "out/x/y/b"}));
  EXPECT_EQ(get("out/closed/a"), "again");
  EXPECT_EQ(mode_of("out/closed"), 0555u);
  EXPECT_EQ(mode_of("out/closed/a"), 0600u);
  EXPECT_EQ(mode_of("out/x/y/b"), 0755u);
  EXPECT_EQ(fs::read_symlink(at("out/x/link")), "../../etc");
  struct stat status;
  ASSERT_EQ(stat(at("out/x/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_nlink, 2u);
  EXPECT_EQ(status.st_uid, 100000u + 1000);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'600'000'000);
  EXPECT_EQ(status.st_mtim.tv_nsec, 123'456'789);
}

TEST_P(FileArchive, WhatLeadsOutIsRefusedByName) {
  put("canary", "kept", 0666);
  ASSERT_EQ(unpack("").error(), 0);
  struct {
    std::string records, path;
    int error;
  } const kCases[] = {
      {file("../canary", "evil"), "../canary", EINVAL},
      {file("/tmp/evil", "evil"), "/tmp/evil", EINVAL},
      {file("a/../../canary", "evil"), "a/../../canary", EINVAL},
      {file("", "evil"), "", EINVAL},
      {symlink_to("up", "..") + file("up/canary", "evil"), "up/canary", ELOOP},
      {symlink_to("abs", directory_) + file("abs/canary", "evil"), "abs/canary", ELOOP},
      {symlink_to("d", "..") + directory("d"), "d", ELOOP},
      {hard_link("h", "../canary"), "h", EINVAL},
      {symlink_to("s", "../canary") + hard_link("h", "s"), "h", EINVAL},
      {hard_link("h", "missing"), "h", ENOENT},
  };
  for (const auto& [records, path, error] : kCases) {
    FileAnswer answer = unpack(records);
    ASSERT_TRUE(answer.failure) << path;
    EXPECT_EQ(answer.failure->system_errno, error) << path;
    EXPECT_EQ(answer.failure->path, path);
  }
  // A link in the place of a file is replaced, not followed.
  EXPECT_EQ(unpack(symlink_to("f", "../canary") + file("f", "mine")).error(), 0);
  EXPECT_EQ(get("out/f"), "mine");
  EXPECT_EQ(get("canary"), "kept");
}

TEST_P(FileArchive, HardLinksLeadOnlyToWhatWasUnpacked) {
  ASSERT_EQ(run("mkdir " + at("out") + " && echo x >" + at("out/mine")).exit->status, 0);
  EXPECT_EQ(unpack(hard_link("h", "mine")).error(), EINVAL);
  EXPECT_EQ(unpack(file("new", "1") + hard_link("mine", "new") + hard_link("mine", "new")).error(),
            0);
  EXPECT_EQ(get("out/mine"), "1");
  EXPECT_EQ(tree(), (Paths{"out", "out/mine", "out/new"}));
}

TEST_P(FileArchive, BrokenStreamsMakeNoHalfFiles) {
  FileEntry long_file = entry("half", EntryType::kFile, 0644);
  long_file.size = 10;
  std::string half = encode_record(long_file) + encode_record(RecordType::kBytes, "12345");
  EXPECT_EQ(unpack(half).error(), EPROTO);
  EXPECT_EQ(unpack(half + encode_record(RecordType::kBytes, "123456")).error(), EPROTO);
  EXPECT_EQ(unpack(encode_record(RecordType::kBytes, "1")).error(), EPROTO);
  EXPECT_EQ(unpack(encode_record(RecordType::kReady)).error(), EPROTO);
  EXPECT_EQ(unpack(encode_record(RecordType::kEntry, "x")).error(), EPROTO);
  EXPECT_EQ(tree(), Paths{"out"});
  EXPECT_EQ(channels_.run(file_request(FileOperation::kUnpack, at("none"))).error(), ENOENT);
}

TEST_P(FileArchive, PackAndUnpackGiveTheSameTree) {
  ASSERT_EQ(run("cd " + directory_ +
                " && mkdir -p in/sub/empty && cd in && seq 100000 >big && "
                "ln big sub/second && ln -s big sub/link && echo 1 >sub/script && chmod 755 "
                "sub/script && truncate -s 100000 sparse && mkfifo fifo && : >none")
                .exit->status,
            0);
  uint32_t channel = channels_.open(file_request(FileOperation::kPack, at("in")));
  ASSERT_TRUE(channels_.wait_closed(channel));
  FileAnswer packed = read_answer(channels_.at(channel));
  ASSERT_EQ(packed.error(), 0);
  EXPECT_EQ(packed.paths(), (Paths{"big", "none", "sparse", "sub", "sub/empty", "sub/link",
                                   "sub/script", "sub/second"}));
  EXPECT_EQ(packed.entries[7].hard_link, "big");
  // The records up to kDone are what unpacking takes.
  EXPECT_EQ(channels_
                .run(file_request(FileOperation::kUnpack, at("out"), bit(FileFlag::kParents)),
                     channels_.at(channel).bytes)
                .error(),
            0);
  run("rm " + at("in/fifo"));
  std::string show = " && find . -printf '%P %y %m %s %n %T@ %l\\n' | sort";
  std::string in = run("cd " + at("in") + show).out, out = run("cd " + at("out") + show).out;
  auto behind_root = [](const std::string& text) { return text.substr(text.find('\n')); };
  EXPECT_EQ(behind_root(in), behind_root(out));
  EXPECT_EQ(run("diff -r " + at("in") + " " + at("out")).out, "");
}

TEST_P(FileArchive, PackFailsAtWhatCannotBeRead) {
  fs::create_directories(at("in"));
  put("in/secret", "x", 0600);
  FileAnswer answer = ask(FileOperation::kPack, "in");
  EXPECT_EQ(answer.error(), EACCES);
  EXPECT_EQ(answer.failure->path, "secret");
  put("single", "abc");
  FileAnswer single = ask(FileOperation::kPack, "single");
  EXPECT_EQ(single.paths(), Paths{"single"});
  EXPECT_EQ(single.bytes, "abc");
}

TEST_P(FileArchive, PickAndRestoreGiveTheSameFilesWithTheirOwners) {
  ASSERT_EQ(run("cd " + directory_ +
                    " && mkdir -p in/sub in/file out/sub/gone out/link && cd in && "
                    "seq 9999 >big && "
                    "ln big sub/second && ln -s big link && rmdir file && echo 1 >file && "
                    "echo s >sub/set && chown 1000:7 sub/set && chmod 6755 sub/set && "
                    "chown -h 5:6 link && chmod 1777 sub && chown 3 sub && echo no >unnamed && "
                    "cd ../out && echo old >big && mkdir file && echo x >file/x && "
                    "echo y >link/y && echo z >sub/gone/z",
                "root")
                .exit->status,
            0);
  std::string named;
  for (const char* name : {"big", "file", "link", "sub", "sub/second", "sub/set"})
    named += encode_record(entry(name, EntryType::kFile, 0));
  FileRequest pick = file_request(FileOperation::kPick, at("in"));
  pick.user = "root";
  uint32_t channel = channels_.open(pick);
  channels_.send(channel, named + encode_done());
  ASSERT_TRUE(channels_.wait_closed(channel));
  FileAnswer picked = read_answer(channels_.at(channel));
  ASSERT_EQ(picked.error(), 0) << picked.failure->path << " " << picked.failure->operation;
  EXPECT_EQ(picked.paths(), (Paths{"big", "file", "link", "sub", "sub/second", "sub/set"}));
  for (const FileEntry& one : picked.entries) EXPECT_EQ(one.inode, 0u);
  FileRequest restore = file_request(FileOperation::kRestore, at("out"));
  restore.user = "root";
  FileAnswer restored =
      channels_.run(restore, encode_record(entry("sub/gone", EntryType::kOther, 0)) +
                                 encode_record(entry("none/such", EntryType::kOther, 0)) +
                                 channels_.at(channel).bytes);
  ASSERT_EQ(restored.error(), 0) << restored.failure->path << " " << restored.failure->operation;
  run("rm " + at("in/unnamed"), "root");
  std::string show = " && find . -mindepth 1 -printf '%P %y %m %U %G %s %n %T@ %l\\n' | sort";
  EXPECT_EQ(run("cd " + at("in") + show, "root").out, run("cd " + at("out") + show, "root").out);
  FileRequest missing = file_request(FileOperation::kPick, at("in"));
  missing.user = "root";
  EXPECT_EQ(
      channels_.run(missing, encode_record(entry("none", EntryType::kFile, 0)) + encode_done())
          .error(),
      ENOENT);
  EXPECT_EQ(channels_.run(restore, encode_record(entry("../in", EntryType::kOther, 0))).error(),
            EINVAL);
}

}  // namespace
}  // namespace atl::agent
