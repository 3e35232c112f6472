// Operations on single files, by the real agent on the real kernel.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "agent/channel_fixture_test.h"
#include "base/file.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kParents = bit(FileFlag::kParents), kReplace = bit(FileFlag::kReplace),
                   kRecursive = bit(FileFlag::kRecursive), kSetMode = bit(FileFlag::kSetMode);
constexpr uid_t kUserOutside = 100000 + 1000;

class FileWorker : public FileTest {};
ATOLL_FILE_TESTS(FileWorker);

uid_t owner_of(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 ? status.st_uid : ~0u;
}

TEST_P(FileWorker, StatTellsWhatIsThere) {
  put("a", "hello", 0640);
  ASSERT_EQ(setxattr(at("a").c_str(), "user.note", "value", 5, 0), 0);
  FileAnswer answer = ask(FileOperation::kStat, "a");
  ASSERT_EQ(answer.error(), 0);
  ASSERT_EQ(answer.entries.size(), 1u);
  const FileEntry& entry = answer.entries[0];
  EXPECT_EQ(entry.path, at("a"));
  EXPECT_EQ(entry.type, EntryType::kFile);
  EXPECT_EQ(entry.size, 5u);
  EXPECT_EQ(entry.mode, 0640u);
  EXPECT_GT(entry.modified_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(answer.close->system_errno, 0);
  EXPECT_EQ(ask(FileOperation::kStat, "b").error(), ENOENT);
  EXPECT_EQ(ask(FileOperation::kStat, "a/b").error(), ENOTDIR);
}

TEST_P(FileWorker, StatDoesNotFollowTheLastLink) {
  fs::create_symlink("/nowhere", at("link"));
  FileAnswer answer = ask(FileOperation::kStat, "link");
  ASSERT_EQ(answer.error(), 0);
  EXPECT_EQ(answer.entries[0].type, EntryType::kSymlink);
  EXPECT_EQ(answer.entries[0].target, "/nowhere");
  EXPECT_EQ(channels_.run(file_request(FileOperation::kStat, "/")).entries[0].type,
            EntryType::kDirectory);
  EXPECT_EQ(channels_.run(file_request(FileOperation::kStat, "/dev/null")).entries[0].type,
            EntryType::kOther);
}

TEST_P(FileWorker, ReadGivesTheRange) {
  std::string bytes(700'000, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  put("a", bytes);
  fs::create_symlink("a", at("link"));
  FileRequest request = file_request(FileOperation::kRead, at("link"));
  request.length = UINT64_MAX;
  FileAnswer whole = channels_.run(request);
  EXPECT_TRUE(whole.bytes == bytes);
  ASSERT_EQ(whole.entries.size(), 1u);
  EXPECT_EQ(whole.entries[0].size, bytes.size());
  request.offset = 100'000;
  request.length = 1000;
  EXPECT_TRUE(channels_.run(request).bytes == bytes.substr(100'000, 1000));
  request.offset = bytes.size() - 10;
  EXPECT_TRUE(channels_.run(request).bytes == bytes.substr(bytes.size() - 10));
  request.offset = UINT64_MAX;
  FileAnswer beyond = channels_.run(request);
  EXPECT_EQ(beyond.error(), 0);
  EXPECT_EQ(beyond.bytes, "");
}

TEST_P(FileWorker, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0666), 0);
  chmod(at("fifo").c_str(), 0666);
  FileRequest request;
  request.length = 10;
  auto error_of = [&](const std::string& path) {
    request = file_request(FileOperation::kRead, path);
    request.length = 10;
    return channels_.run(request).error();
  };
  EXPECT_EQ(error_of(at("fifo")), ENXIO);
  EXPECT_EQ(error_of("/dev/zero"), ENXIO);
  EXPECT_EQ(error_of("/run/atoll/sudo"), ENXIO);
  EXPECT_EQ(error_of(directory_), EISDIR);
  EXPECT_EQ(error_of(at("missing")), ENOENT);
}

TEST_P(FileWorker, LinksOfProcToOtherFilesAreNotFollowed) {
  EXPECT_EQ(channels_.run(file_request(FileOperation::kList, "/proc/self/root")).error(), ELOOP);
  EXPECT_EQ(
      channels_.run(file_request(FileOperation::kRead, "/proc/self/cwd/etc/hostname")).error(),
      ELOOP);
  EXPECT_EQ(channels_.run(file_request(FileOperation::kRead, "/proc/self/fd/0")).error(), ELOOP);
}

TEST_P(FileWorker, AWorkerMayWhatItsUserMay) {
  put("secret", "s", 0600);
  FileRequest request = file_request(FileOperation::kRead, at("secret"));
  EXPECT_EQ(channels_.run(request).error(), EACCES);
  request.user = "root";
  // The file belongs to the host's root, whom nobody inside is.
  EXPECT_EQ(channels_.run(request).error(), EACCES);
  FileRequest as_root;
  as_root.user = "root";
  ASSERT_EQ(channels_.write(at("of_root"), "x", as_root).error(), 0);
  EXPECT_EQ(owner_of(at("of_root")), 100000u);
  ASSERT_EQ(channels_.write(at("of_user"), "x").error(), 0);
  EXPECT_EQ(owner_of(at("of_user")), kUserOutside);
}

TEST_P(FileWorker, AnyUserCanBeNamed) {
  FileRequest request;
  request.user = "1234:4321";
  ASSERT_EQ(channels_.write(at("other"), "x", request).error(), 0);
  EXPECT_EQ(owner_of(at("other")), 100000u + 1234);
  request.user = "nobody-here";
  FileAnswer refused = channels_.write(at("none"), "x", request);
  ASSERT_TRUE(refused.failure);
  EXPECT_FALSE(fs::exists(at("none")));
}

TEST_P(FileWorker, WriteMakesAWholeFileOrNone) {
  std::string bytes(3'000'000, 'y');
  FileAnswer made = channels_.write(at("new"), bytes);
  ASSERT_EQ(made.error(), 0);
  EXPECT_EQ(*made.done, 0);
  EXPECT_EQ(made.entries[0].size, bytes.size());
  EXPECT_EQ(made.entries[0].mode, 0644u);
  EXPECT_TRUE(get("new") == bytes);
  EXPECT_EQ(channels_.write(at("new"), "z").error(), EEXIST);
  FileRequest replace;
  replace.flags = kReplace;
  replace.mode = 0755;
  replace.attributes = {{"user.a", "b"}};
  FileAnswer replaced = channels_.write(at("new"), "z", replace);
  ASSERT_EQ(replaced.error(), 0);
  EXPECT_EQ(*replaced.done, bit(DoneFlag::kExisted));
  EXPECT_EQ(replaced.entries[0].mode, 0755u);
  EXPECT_EQ(get("new"), "z");
  char value[8];
  EXPECT_EQ(getxattr(at("new").c_str(), "user.a", value, sizeof value), 1);
  EXPECT_EQ(tree(), std::vector<std::string>{"new"});
}

TEST_P(FileWorker, WriteThatBreaksLeavesNothing) {
  FileRequest request = file_request(FileOperation::kWrite, at("a/b/new"), kParents);
  uint32_t given_up = channels_.open(request);
  channels_.send(given_up, encode_record(RecordType::kBytes, std::string(200'000, 'x')));
  channels_.give_up(given_up);
  EXPECT_TRUE(channels_.wait_closed(given_up));
  uint32_t ended = channels_.open(request);
  channels_.send(ended, encode_record(RecordType::kBytes, "half"));
  channels_.end(ended);
  EXPECT_TRUE(channels_.wait_closed(ended));
  EXPECT_EQ(read_answer(channels_.at(ended)).error(), ECANCELED);
  EXPECT_TRUE(leaves_are_gone());
  EXPECT_EQ(tree(), std::vector<std::string>{});
}

TEST_P(FileWorker, WriteMakesParentsOnlyIfAsked) {
  EXPECT_EQ(channels_.write(at("a/b/c"), "x").error(), ENOENT);
  FileRequest request;
  request.flags = kParents;
  EXPECT_EQ(channels_.write(at("a/b/c"), "x", request).error(), 0);
  EXPECT_EQ(tree(), (std::vector<std::string>{"a", "a/b", "a/b/c"}));
  EXPECT_EQ(channels_.write(at("a/b/c/d"), "x", request).error(), ENOTDIR);
  request.flags = kReplace;
  EXPECT_EQ(channels_.write(at("a/b"), "x", request).error(), EISDIR);
}

TEST_P(FileWorker, WriteReplacesALinkNotItsTarget) {
  put("target", "old", 0666);
  fs::create_symlink(at("target"), at("link"));
  FileRequest request;
  request.flags = kReplace;
  ASSERT_EQ(channels_.write(at("link"), "new", request).error(), 0);
  EXPECT_EQ(get("target"), "old");
  EXPECT_EQ(get("link"), "new");
  EXPECT_FALSE(fs::is_symlink(at("link")));
}

TEST_P(FileWorker, MoveRenames) {
  put("a", "1");
  put("b", "2");
  FileRequest request = file_request(FileOperation::kMove, at("a"));
  request.target = at("b");
  EXPECT_EQ(channels_.run(request).error(), EEXIST);
  request.flags = kReplace;
  FileAnswer moved = channels_.run(request);
  ASSERT_EQ(moved.error(), 0);
  EXPECT_EQ(*moved.done, bit(DoneFlag::kExisted));
  EXPECT_EQ(moved.paths(), std::vector<std::string>{at("b")});
  EXPECT_EQ(get("b"), "1");
  request.path = at("b");
  request.target = at("x/y/b");
  request.flags = 0;
  EXPECT_EQ(channels_.run(request).error(), ENOENT);
  request.flags = kParents;
  EXPECT_EQ(channels_.run(request).error(), 0);
  EXPECT_EQ(tree(), (std::vector<std::string>{"x", "x/y", "x/y/b"}));
  request.path = at("nothing");
  request.target = at("p/q");
  EXPECT_EQ(channels_.run(request).error(), ENOENT);
  request.path = at("x/y/b");
  request.target = "/run/atoll-moved";
  request.user = "root";
  EXPECT_EQ(channels_.run(request).error(), EXDEV);
  EXPECT_EQ(tree(), (std::vector<std::string>{"x", "x/y", "x/y/b"}));
}

TEST_P(FileWorker, MakeDirectoryAcceptsOneThatIsThere) {
  FileRequest request = file_request(FileOperation::kMakeDirectory, at("a/b"));
  EXPECT_EQ(channels_.run(request).error(), ENOENT);
  request.flags = kParents;
  request.mode = 0750;
  FileAnswer made = channels_.run(request);
  ASSERT_EQ(made.error(), 0);
  EXPECT_EQ(made.entries[0].mode, 0750u);
  EXPECT_EQ(*made.done, 0);
  EXPECT_EQ(*channels_.run(request).done, bit(DoneFlag::kExisted));
  put("file", "");
  EXPECT_EQ(ask(FileOperation::kMakeDirectory, "file").error(), EEXIST);
}

TEST_P(FileWorker, ChangeSetsModeAndAttributes) {
  ASSERT_EQ(channels_.write(at("a"), "x").error(), 0);
  FileRequest request = file_request(FileOperation::kChange, at("a"), kSetMode);
  request.mode = 0400;
  request.attributes = {{"user.one", "1"}, {"user.two", std::string("\0\xff", 2)}};
  FileAnswer changed = channels_.run(request);
  ASSERT_EQ(changed.error(), 0);
  EXPECT_EQ(changed.entries[0].mode, 0400u);
  ASSERT_EQ(changed.entries[0].attributes.size(), 2u);
  request.mode = 0600;
  request.attributes = {{"user.one", std::nullopt}};
  changed = channels_.run(request);
  ASSERT_EQ(changed.error(), 0);
  EXPECT_EQ(changed.entries[0].mode, 0600u);
  request.flags = 0;
  request.mode = 0;
  ASSERT_EQ(changed.entries[0].attributes.size(), 1u);
  EXPECT_EQ(changed.entries[0].attributes[0].name, "user.two");
  EXPECT_EQ(*changed.entries[0].attributes[0].value, std::string("\0\xff", 2));
  EXPECT_EQ(channels_.run(request).error(), ENODATA);
  request.attributes = {{"trusted.x", "1"}};
  EXPECT_EQ(channels_.run(request).error(), EPERM);
}

TEST_P(FileWorker, RemoveTakesWholeTreesOnlyIfAsked) {
  ASSERT_EQ(
      run("mkdir -p " + at("d/e/f") + " && touch " + at("d/1") + " " + at("d/e/2")).exit->status,
      0);
  fs::create_symlink("/etc", at("d/e/link"));
  put("file", "");
  EXPECT_EQ(ask(FileOperation::kRemove, "d").error(), ENOTEMPTY);
  fs::create_symlink(at("d"), at("to_d"));
  EXPECT_EQ(ask(FileOperation::kRemove, "to_d", kRecursive).error(), 0);
  EXPECT_EQ(tree().size(), 7u);
  EXPECT_EQ(ask(FileOperation::kRemove, "d", kRecursive).error(), 0);
  EXPECT_EQ(ask(FileOperation::kRemove, "file").error(), 0);
  EXPECT_EQ(ask(FileOperation::kRemove, "file").error(), ENOENT);
  EXPECT_EQ(tree(), std::vector<std::string>{});
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

}  // namespace
}  // namespace atl::agent
