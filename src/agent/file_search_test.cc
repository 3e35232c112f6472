// Lists, searches and watches, by the real agent on the real kernel.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/channel_fixture_test.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

class FileSearch : public FileTest {
 protected:
  FileAnswer list(uint32_t depth, uint32_t limit = 0, const std::string& cursor = {}) {
    FileRequest request = file_request(FileOperation::kList, directory_);
    request.depth = depth;
    request.limit = limit;
    request.cursor = cursor;
    return channels_.run(request);
  }
  FileAnswer find(const std::string& glob, const std::string& text = {}, uint32_t limit = 0) {
    FileRequest request = file_request(FileOperation::kFind, directory_);
    request.target = glob;
    request.text = text;
    request.depth = 0;
    request.limit = limit;
    return channels_.run(request);
  }
  Paths all(std::initializer_list<const char*> names) const {
    Paths paths;
    for (const char* name : names) paths.push_back(at(name));
    return paths;
  }
};
ATOLL_FILE_TESTS(FileSearch);

TEST_P(FileSearch, ListIsInTheOrderOfPaths) {
  fs::create_directories(at("a/x"));
  fs::create_directories(at("a.d"));
  for (const char* name : {"a-b", "a/x/1", "a.d/2", "b"}) put(name, "12");
  fs::create_symlink("/", at("c"));
  EXPECT_EQ(list(1).paths(), all({"a", "a-b", "a.d", "b", "c"}));
  EXPECT_EQ(list(2).paths(), all({"a", "a-b", "a.d", "a.d/2", "a/x", "b", "c"}));
  EXPECT_EQ(list(0).paths(), all({"a", "a-b", "a.d", "a.d/2", "a/x", "a/x/1", "b", "c"}));
  EXPECT_EQ(ask(FileOperation::kList, "b").error(), ENOTDIR);
  EXPECT_EQ(ask(FileOperation::kList, "missing").error(), ENOENT);
  FileAnswer root = channels_.run(file_request(FileOperation::kList, "/"));
  EXPECT_EQ(root.error(), 0);
  EXPECT_EQ(root.entries.at(0).path.rfind('/'), 0u);
}

TEST_P(FileSearch, PagesJoinToTheWhole) {
  for (int i = 0; i < 40; ++i) {
    fs::create_directories(at("d" + std::to_string(i)));
    if (i % 3 == 0) put("d" + std::to_string(i) + "/file", "");
    put("f" + std::to_string(i), "");
  }
  Paths whole = list(0).paths();
  EXPECT_EQ(whole.size(), 94u);
  EXPECT_TRUE(std::is_sorted(whole.begin(), whole.end()));
  for (uint32_t limit : {1u, 7u, 50u}) {
    Paths joined;
    while (true) {
      Paths page = list(0, limit, joined.empty() ? "" : joined.back()).paths();
      EXPECT_LE(page.size(), limit);
      if (page.empty()) break;
      joined.insert(joined.end(), page.begin(), page.end());
    }
    EXPECT_EQ(joined, whole) << limit;
  }
}

TEST_P(FileSearch, FindByName) {
  fs::create_directories(at("src/deep"));
  for (const char* name : {"a.txt", "src/b.txt", "src/deep/c.txt", "src/deep/d.c"}) put(name, "");
  EXPECT_EQ(find("*.txt").paths(), all({"a.txt", "src/b.txt", "src/deep/c.txt"}));
  EXPECT_EQ(find("src/*.txt").paths(), all({"src/b.txt"}));
  EXPECT_EQ(find("src/**/*.txt").paths(), all({"src/b.txt", "src/deep/c.txt"}));
  EXPECT_EQ(find("[").error(), EINVAL);
  FileAnswer cut = find("*", "", 2);
  EXPECT_EQ(cut.matches.size(), 2u);
  EXPECT_EQ(*cut.done, bit(DoneFlag::kCutShort));
  EXPECT_EQ(*find("*", "", 6).done, 0);
}

TEST_P(FileSearch, FindByContent) {
  put("a", "one\nneedle here\nthree\nneedle again");
  put("b", std::string("needle\0", 7));
  put("c", "nothing");
  put("secret", "needle", 0600);
  fs::create_symlink(at("a"), at("link"));
  FileAnswer answer = find("", "needle");
  ASSERT_EQ(answer.matches.size(), 2u);
  EXPECT_EQ(answer.matches[0].entry.path, at("a"));
  EXPECT_EQ(answer.matches[0].line, 2u);
  EXPECT_EQ(answer.matches[0].text, "needle here");
  EXPECT_EQ(answer.matches[1].line, 4u);
  EXPECT_EQ(find("c*", "needle").matches.size(), 0u);
  EXPECT_EQ(find("", "a\nb").error(), EINVAL);
}

TEST_P(FileSearch, WalksDoNotEnterProc) {
  FileRequest request = file_request(FileOperation::kFind, "/");
  request.target = "cmdline";
  request.depth = 2;
  EXPECT_EQ(channels_.run(request).paths(), Paths{});
  request.path = "/proc/self";
  request.depth = 1;
  EXPECT_EQ(channels_.run(request).paths(), Paths{"/proc/self/cmdline"});
}

class FileWatch : public FileSearch {
 protected:
  uint32_t watch(uint32_t flags) {
    uint32_t channel = channels_.open(file_request(FileOperation::kWatch, directory_, flags));
    EXPECT_TRUE(daemon_.run_until([&] { return read_answer(channels_.at(channel)).ready; }));
    return channel;
  }
  // Waits until the change has been told.
  bool told(uint32_t channel, const FileChange& wanted) {
    auto is_it = [&](const FileChange& change) {
      return change.kind == wanted.kind && change.path == wanted.path &&
             change.target == wanted.target;
    };
    return daemon_.run_until([&] {
      auto changes = read_answer(channels_.at(channel)).changes;
      return std::any_of(changes.begin(), changes.end(), is_it);
    });
  }
  void stop(uint32_t channel) {
    channels_.give_up(channel);
    EXPECT_TRUE(channels_.wait_closed(channel));
  }
};
ATOLL_FILE_TESTS(FileWatch);

TEST_P(FileWatch, TellsWhatHappens) {
  uint32_t channel = watch(0);
  run("cd " + directory_ +
      " && echo 1 >a && chmod 600 a && mv a b && mkdir d && rm b && "
      "echo 1 >c && mv c /tmp/atoll-elsewhere-$$ && rm /tmp/atoll-elsewhere-$$");
  EXPECT_TRUE(told(channel, {ChangeKind::kCreated, {}, at("a"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kWritten, {}, at("a"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kAttributes, {}, at("a"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kMoved, {}, at("a"), at("b")}));
  EXPECT_TRUE(told(channel, {ChangeKind::kCreated, {}, at("d"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kRemoved, {}, at("b"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kRemoved, {}, at("c"), ""}));
  stop(channel);
}

TEST_P(FileWatch, RecursiveFollowsNewDirectories) {
  fs::create_directories(at("old/sub"));
  chmod(at("old/sub").c_str(), 0777);
  uint32_t channel = watch(bit(FileFlag::kRecursive));
  run("cd " + directory_ + " && touch old/sub/1 && mkdir -p n/m && touch n/m/2 && mv n o");
  EXPECT_TRUE(told(channel, {ChangeKind::kCreated, {}, at("old/sub/1"), ""}));
  EXPECT_TRUE(told(channel, {ChangeKind::kMoved, {}, at("n"), at("o")}));
  run("touch " + at("o/m/3"));
  EXPECT_TRUE(told(channel, {ChangeKind::kCreated, {}, at("o/m/3"), ""}));
  stop(channel);
}

TEST_P(FileWatch, EndsWithWhatItWatches) {
  ASSERT_EQ(run("mkdir " + at("d")).exit->status, 0);
  uint32_t channel = channels_.open(file_request(FileOperation::kWatch, at("d")));
  EXPECT_TRUE(daemon_.run_until([&] { return read_answer(channels_.at(channel)).ready; }));
  run("rmdir " + at("d"));
  ASSERT_TRUE(channels_.wait_closed(channel));
  FileAnswer answer = read_answer(channels_.at(channel));
  EXPECT_EQ(answer.error(), 0);
  EXPECT_EQ(answer.changes.back().kind, ChangeKind::kRemoved);
  EXPECT_EQ(ask(FileOperation::kWatch, "d").error(), ENOENT);
}

TEST_P(FileWatch, OverflowIsTold) {
  uint32_t channel = watch(0);
  channels_.at(channel).credit = TestChannel::Credit::kNone;
  // More than the kernel queues for one watcher, whose records nobody takes.
  run("cd " + directory_ +
      " && python3 -c \"\nfor i in range(40000): open('f%d' % (i % 50), 'w')\"");
  channels_.at(channel).credit = TestChannel::Credit::kAtOnce;
  channels_.grant(channel, 1ull << 30);
  EXPECT_TRUE(told(channel, {ChangeKind::kOverflow, {}, directory_, ""}));
  stop(channel);
}

}  // namespace
}  // namespace atl::agent
