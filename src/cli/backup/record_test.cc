#include "cli/backup/record.h"

#include <gtest/gtest.h>

namespace atl::cli::backup {
namespace {

TEST(BackupRecord, RoundTrip) {
  Record record{.atoll_version = "0.1.0",
                .schema_version = 7,
                .created_at = "2026-11-16T07:00:00Z",
                .images = Record::Images::kLeftOut,
                .sandboxes = {"a", "b"}};
  auto decoded = decode_record(encode(record));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_EQ(decoded->atoll_version, "0.1.0");
  EXPECT_EQ(decoded->schema_version, 7u);
  EXPECT_EQ(decoded->created_at, record.created_at);
  EXPECT_EQ(decoded->images, Record::Images::kLeftOut);
  EXPECT_EQ(decoded->sandboxes, record.sandboxes);
}

TEST(BackupRecord, RefusesALaterFormatAndWhatLacksAField) {
  auto later = decode_record(R"({"format":2,"anything":"else"})");
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error().code(), Code::kUnsupported);
  for (const char* text :
       {"", "[]", "{}", R"({"format":1})",
        R"({"format":1,"schema_version":0,"has_images":true,"sandboxes_that_ran":[]})",
        R"({"format":1,"schema_version":1,"has_images":1,"sandboxes_that_ran":[]})",
        R"({"format":1,"schema_version":1,"has_images":true})"})
    EXPECT_FALSE(decode_record(text).ok()) << text;
}

}  // namespace
}  // namespace atl::cli::backup
