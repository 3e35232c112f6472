#include "egress/audit_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "egress/denial_tally.h"
#include "egress/name_table.h"

namespace atl::egress {
namespace {

class AuditFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/atoll-audit-XXXXXX";
    path_ = mkdtemp(pattern);
    directory_ = *open_file(path_, O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::string file() const { return path_ + "/" + id_.string() + ".audit"; }
  std::string text() const { return *read_file(file(), 1 << 20); }
  void append(AuditFile& log, const std::string& name) {
    AuditRow row{.event = AuditEvent::kDns, .name = name, .reason = "no_rule"};
    EXPECT_TRUE(log.append(7, row, clock_.wall_now()).ok());
  }

  std::string path_;
  Fd directory_;
  SandboxId id_ = SandboxId::draw();
  FakeClock clock_;
};

TEST_F(AuditFileTest, HasARowForEachAttempt) {
  auto log = AuditFile::open(directory_.get(), id_);
  ASSERT_TRUE(log.ok());
  append(*log, "evil.example");
  append(*log, "a\"\n\x01");
  EXPECT_EQ(*verify_audit(text(), id_), 2u);
  auto page = AuditFile::read(directory_.get(), id_, 0, 1 << 16);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->lines.size(), 2u);
  EXPECT_TRUE(page->lines[0].starts_with("{\"n\":1,\"sandbox\":\"" + id_.string() +
                                         "\",\"tenant\":7,\"time\":\"2027-01-15T08:00:00.000Z\","
                                         "\"event\":\"dns\",\"decision\":\"deny\","
                                         "\"name\":\"evil.example\",\"reason\":\"no_rule\","
                                         "\"count\":1,\"chain\":\""))
      << page->lines[0];
  EXPECT_NE(page->lines[1].find("\"name\":\"a\\\"\\n\\u0001\""), std::string::npos);
  EXPECT_EQ(page->next, text().size());
  auto second = AuditFile::read(directory_.get(), id_, page->lines[0].size() + 1, 1 << 16);
  EXPECT_EQ(second->lines.size(), 1u);
  EXPECT_FALSE(AuditFile::read(directory_.get(), id_, 5, 1 << 16).ok());
}

TEST_F(AuditFileTest, GoesOnWhereItWas) {
  for (const char* name : {"a.b", "c.d", "e.f"}) {
    auto log = AuditFile::open(directory_.get(), id_);
    ASSERT_TRUE(log.ok());
    append(*log, name);
  }
  EXPECT_EQ(*verify_audit(text(), id_), 3u);
}

TEST_F(AuditFileTest, CutsOffHalfARow) {
  auto log = AuditFile::open(directory_.get(), id_);
  append(*log, "a.b");
  append(*log, "c.d");
  std::filesystem::resize_file(file(), text().size() - 10);
  auto again = AuditFile::open(directory_.get(), id_);
  ASSERT_TRUE(again.ok()) << again.error().message();
  append(*again, "e.f");
  EXPECT_EQ(*verify_audit(text(), id_), 2u);
  EXPECT_EQ(text().find("c.d"), std::string::npos);
}

TEST_F(AuditFileTest, SeesWhatWasChanged) {
  auto log = AuditFile::open(directory_.get(), id_);
  for (const char* name : {"a.b", "c.d", "e.f"}) append(*log, name);
  std::string good = text();
  std::string changed = good;
  changed[changed.find("c.d")] = 'x';
  EXPECT_FALSE(verify_audit(changed, id_).ok());
  size_t first = good.find('\n') + 1, second = good.find('\n', first) + 1;
  EXPECT_FALSE(verify_audit(good.substr(first), id_).ok());
  EXPECT_FALSE(verify_audit(good.substr(0, first) + good.substr(second), id_).ok());
  EXPECT_FALSE(verify_audit(good, SandboxId::draw()).ok());
  ASSERT_TRUE(replace_file(file(), changed, 0600).ok());
  EXPECT_FALSE(AuditFile::open(directory_.get(), id_).ok());
}

TEST_F(AuditFileTest, ASandboxThatTriedNothingHasNoFile) {
  auto log = AuditFile::open(directory_.get(), id_);
  ASSERT_TRUE(log.ok());
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_TRUE(AuditFile::read(directory_.get(), id_, 0, 100)->lines.empty());
}

TEST_F(AuditFileTest, TheOldestLogsMakeRoom) {
  std::vector<SandboxId> ids = {SandboxId::draw(), SandboxId::draw(), SandboxId::draw()};
  uint64_t bytes = 0;
  for (const SandboxId& id : ids) {
    auto log = AuditFile::open(directory_.get(), id);
    append(*log, "a.b");
    bytes = AuditFile::read(directory_.get(), id, 0, 1 << 16)->next;
  }
  auto is_open = [&](const SandboxId& id) { return id == ids[0]; };
  ASSERT_TRUE(AuditFile::sweep(directory_.get(), 3 * bytes, is_open).ok());
  auto logs = [&] {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(logs(), 3);
  ASSERT_TRUE(AuditFile::sweep(directory_.get(), bytes, is_open).ok());
  EXPECT_EQ(logs(), 1);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/" + ids[0].string() + ".audit"));
}

// Whichever id is the lower one.
TEST_F(AuditFileTest, TheOldestLogOfOneSecondMakesRoom) {
  for (int64_t first_ns : {100, 300}) {
    SandboxId ids[] = {SandboxId::draw(), SandboxId::draw()};
    std::sort(std::begin(ids), std::end(ids));
    uint64_t bytes = 0;
    for (int i = 0; i < 2; ++i) {
      auto log = AuditFile::open(directory_.get(), ids[i]);
      append(*log, "a.b");
      bytes = AuditFile::read(directory_.get(), ids[i], 0, 1 << 16)->next;
      timespec time{.tv_sec = 1'700'000'000, .tv_nsec = i == 0 ? first_ns : 200};
      timespec times[2] = {time, time};
      std::string name = ids[i].string() + ".audit";
      ASSERT_EQ(utimensat(directory_.get(), name.c_str(), times, 0), 0);
    }
    auto none_is_open = [](const SandboxId&) { return false; };
    ASSERT_TRUE(AuditFile::sweep(directory_.get(), bytes, none_is_open).ok());
    const SandboxId& kept = first_ns < 200 ? ids[1] : ids[0];
    EXPECT_TRUE(std::filesystem::exists(path_ + "/" + kept.string() + ".audit")) << first_ns;
    ASSERT_TRUE(AuditFile::sweep(directory_.get(), 0, none_is_open).ok());
  }
}

class AuditSegmentsTest : public AuditFileTest {
 protected:
  // Rows of about a kilobyte until `count` segments were begun.
  void fill(AuditFile& log, uint64_t count) {
    AuditRow row{.event = AuditEvent::kRequest, .allowed = true, .method = "GET"};
    row.name = row.path = row.rule = std::string(300, 'x');
    while (!std::filesystem::exists(segment(count - 1)))
      ASSERT_TRUE(log.append(7, row, clock_.wall_now()).ok());
  }
  std::string segment(uint64_t number) const { return path_ + "/" + segment_name(id_, number); }
  std::string text_of(uint64_t number) const { return *read_file(segment(number), 16 << 20); }
  std::vector<std::string> read_all_pages(uint64_t from) const {
    std::vector<std::string> lines;
    while (true) {
      auto page = AuditFile::read(directory_.get(), id_, from, 1 << 20);
      EXPECT_TRUE(page.ok());
      if (!page.ok() || page->lines.empty()) return lines;
      lines.insert(lines.end(), page->lines.begin(), page->lines.end());
      from = page->next;
    }
  }
  // Room for the segment that grows and one before it.
  AuditRetention three_{.bytes = 3 * kAuditSegmentBytes};
};

TEST_F(AuditSegmentsTest, TheChainGoesOnThroughAllOfThem) {
  auto log = AuditFile::open(directory_.get(), id_);
  fill(*log, 3);
  AuditLink link = first_link(id_);
  for (uint64_t number = 0; number < 3; ++number) {
    if (number > 0) {
      EXPECT_EQ(*link_before(text_of(number)), link);
    }
    auto end = verify_rows(text_of(number), link);
    ASSERT_TRUE(end.ok()) << end.error().message();
    link = *end;
  }
  EXPECT_EQ(link.rows, log->rows());
  std::vector<std::string> lines = read_all_pages(0);
  EXPECT_EQ(lines.size(), log->rows());
  auto again = AuditFile::open(directory_.get(), id_);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->rows(), log->rows());
  append(*again, "a.b");
  EXPECT_TRUE(verify_rows(text_of(2), *link_before(text_of(2))).ok());
}

TEST_F(AuditSegmentsTest, TheOldestIsGivenUpAndTheRestSaysSo) {
  auto log = AuditFile::open(directory_.get(), id_, three_);
  fill(*log, 3);
  uint64_t early = AuditFile::read(directory_.get(), id_, 0, 1 << 16)->next;
  fill(*log, 6);
  EXPECT_EQ(std::filesystem::file_size(segment(0)), 0u);
  EXPECT_FALSE(std::filesystem::exists(segment(3)));
  EXPECT_NE(text_of(5).substr(0, 300).find("oldest_dropped"), std::string::npos);
  EXPECT_TRUE(verify_rows(text_of(4), *link_before(text_of(4))).ok());
  // Who reads on where he was is told of all that is left.
  uint64_t left = log->rows() - link_before(text_of(4))->rows;
  EXPECT_EQ(read_all_pages(0).size(), left);
  EXPECT_EQ(read_all_pages(early).size(), left);
  auto again = AuditFile::open(directory_.get(), id_, three_);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->rows(), log->rows());
  ASSERT_TRUE(AuditFile::remove(directory_.get(), id_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(AuditSegmentsTest, NothingIsGivenUpWhereItMustNotBe) {
  AuditRetention strict{.bytes = 2 * kAuditSegmentBytes,
                        .when_full = AuditRetention::WhenFull::kRefuse};
  auto log = AuditFile::open(directory_.get(), id_, strict);
  AuditRow row{.event = AuditEvent::kRequest, .name = std::string(300, 'x')};
  Result<void> done;
  while (done) done = log->append(7, row, clock_.wall_now());
  EXPECT_EQ(done.error().reason(), "audit_full");
  EXPECT_TRUE(verify_audit(text_of(0), id_).ok());
  EXPECT_EQ(read_all_pages(0).size(), log->rows());
}

TEST_F(AuditSegmentsTest, ACrashBetweenTwoOfThemLosesNothing) {
  auto log = AuditFile::open(directory_.get(), id_, three_);
  fill(*log, 2);
  uint64_t rows = link_before(text_of(1))->rows;
  std::filesystem::resize_file(segment(1), 0);  // made, and nothing written yet
  auto again = AuditFile::open(directory_.get(), id_, three_);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->rows(), rows);
  append(*again, "a.b");
  EXPECT_EQ(link_before(text_of(1))->rows, rows);
  EXPECT_TRUE(AuditFile::open(directory_.get(), id_, three_).ok());
}

TEST_F(AuditSegmentsTest, SeesASegmentThatIsNotTheNext) {
  auto log = AuditFile::open(directory_.get(), id_);
  fill(*log, 3);
  std::filesystem::copy_file(segment(2), segment(1),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(AuditFile::open(directory_.get(), id_).ok());
}

TEST_F(AuditFileTest, NamesKeepTheirAddresses) {
  HostName pypi = *HostName::parse("pypi.org"), npm = *HostName::parse("npmjs.org");
  {
    auto table = NameTable::open(directory_.get(), id_);
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(*table->number_of(pypi), 0u);
    EXPECT_EQ(*table->number_of(npm), 1u);
    EXPECT_EQ(*table->number_of(pypi), 0u);
  }
  auto again = NameTable::open(directory_.get(), id_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->find(NameTable::v4(1)), npm);
  EXPECT_EQ(again->find(NameTable::v6(0)), pypi);
  EXPECT_FALSE(again->find(NameTable::v4(2)).has_value());
  for (size_t i = 2; i < kMaxNames; ++i)
    ASSERT_TRUE(again->number_of(*HostName::parse("n" + std::to_string(i) + ".a")).ok());
  auto full = again->number_of(*HostName::parse("one.more"));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().reason(), "too_many_names");
  EXPECT_TRUE(NameTable::remove(directory_.get(), id_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST(DenialTally, CountsAFloodAndLosesNothing) {
  DenialTally tally;
  FakeClock clock;
  AuditRow row{.event = AuditEvent::kPacket, .address = "1.2.3.4", .port = 80};
  size_t written = 0;
  uint64_t total = 0;
  for (int i = 0; i < 1000; ++i) written += tally.add(row, clock.steady_now()) ? 1 : 0;
  for (int i = 0; i < 1000; ++i) {
    AuditRow other = row;
    other.port = static_cast<uint16_t>(1000 + i);
    written += tally.add(other, clock.steady_now()) ? 1 : 0;
  }
  EXPECT_EQ(written, kMaxDenialKinds);
  EXPECT_FALSE(tally.has_due(clock.steady_now()));
  clock.advance(kTallyTime);
  EXPECT_TRUE(tally.has_due(clock.steady_now()));
  for (const AuditRow& one : tally.take()) total += one.count;
  EXPECT_EQ(total + written, 2000u);
  EXPECT_FALSE(tally.has_due(clock.steady_now()));
  EXPECT_TRUE(tally.add(row, clock.steady_now()));
}

}  // namespace
}  // namespace atl::egress
