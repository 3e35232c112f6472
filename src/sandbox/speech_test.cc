#include "sandbox/speech.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using Fields = std::vector<std::string>;

Fields fields_of(std::string_view line) {
  auto fields = speech_fields(line);
  return fields ? *fields : Fields{"refused"};
}

TEST(Speech, LinesAreTakenApartAsTheyWereMade) {
  std::string line = speech_line({"run", "7", "a\tb\n\\c\\n\r", ""});
  EXPECT_EQ(line, "run\t7\ta\\tb\\n\\\\c\\\\n\\r\t\n");
  line.pop_back();
  EXPECT_EQ(fields_of(line), (Fields{"run", "7", "a\tb\n\\c\\n\r", ""}));
  EXPECT_EQ(fields_of(""), (Fields{""}));
}

TEST(Speech, WhatIsNotWellEscapedIsRefused) {
  EXPECT_EQ(fields_of("a\\"), Fields{"refused"});
  EXPECT_EQ(fields_of("a\\x"), Fields{"refused"});
  std::string many(kMaxSpeechFields, '\t');
  EXPECT_EQ(fields_of(many), Fields{"refused"});
  many.pop_back();
  EXPECT_EQ(fields_of(many).size(), kMaxSpeechFields);
}

TEST(Speech, OnlyWordsAboutTheRunCount) {
  EXPECT_EQ(parse_end({"end", "3", "ok"}, 3), RunEnd::kOk);
  EXPECT_EQ(parse_end({"end", "3", "exception"}, 3), RunEnd::kException);
  EXPECT_EQ(parse_end({"end", "3", "interrupted"}, 3), RunEnd::kInterrupted);
  for (const Fields& fields :
       {Fields{"end", "4", "ok"}, Fields{"end", "3", "wall_time"}, Fields{"end", "3"},
        Fields{"end", "03", "ok"}, Fields{"end", "3", "ok", ""}, Fields{"ready", "3"}, Fields{""}})
    EXPECT_FALSE(parse_end(fields, 3));
}

TEST(Speech, ResultsAreTextByMimeType) {
  auto result = parse_result({"result", "3", "1", "text/plain", "x", "a/b+json", "{}"}, 3);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->is_main);
  ASSERT_EQ(result->data.size(), 2u);
  EXPECT_EQ(result->data[1].second, "{}");
  for (const Fields& fields :
       {Fields{"result", "3", "1"}, Fields{"result", "3", "1", "text/plain"},
        Fields{"result", "3", "2", "text/plain", "x"}, Fields{"result", "4", "1", "a/b", "x"},
        Fields{"result", "3", "1", "plain", "x"}, Fields{"result", "3", "1", "a/b c", "x"},
        Fields{"result", "3", "1", "a/b", "\xff"},
        Fields{"result", "3", "1", std::string(200, 'a') + "/b", "x"}})
    EXPECT_FALSE(parse_result(fields, 3));
}

TEST(Speech, ErrorsHaveThreeParts) {
  auto error = parse_error({"error", "3", "Name", "value", "trace"}, 3);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->name + error->value + error->traceback, "Namevaluetrace");
  EXPECT_FALSE(parse_error({"error", "3", "Name", "value"}, 3));
  EXPECT_FALSE(parse_error({"error", "3", "Name", "\xfe", "trace"}, 3));
}

std::string taken(SpeechLines& lines, std::string_view bytes) {
  std::string found;
  while (!bytes.empty())
    if (auto line = lines.take(bytes))
      found += line->text + (line->is_whole ? "." : "~") + std::to_string(line->start) + "-" +
               std::to_string(line->end) + " ";
  return found;
}

TEST(SpeechLines, AreCutWhereverTheBytesAre) {
  std::string_view all = "one\ntwo two\n\nlong line\nrest";
  for (size_t piece = 1; piece <= all.size(); ++piece) {
    SpeechLines lines(100, 7);
    std::string found;
    for (size_t at = 0; at < all.size(); at += piece) found += taken(lines, all.substr(at, piece));
    EXPECT_EQ(found, "one.100-104 two two.104-112 .112-113 long li~113-123 ");
    EXPECT_EQ(lines.next(), 100 + all.size());
  }
}

}  // namespace
}  // namespace atl::sandbox
