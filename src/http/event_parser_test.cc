#include "http/event_parser.h"

#include <vector>

#include <gtest/gtest.h>

#include "http/exchange.h"

namespace atl::http {
namespace {

std::vector<ReceivedEvent> parse_in_pieces(std::string_view text, size_t piece) {
  EventParser parser;
  std::vector<ReceivedEvent> events;
  auto keep = [&](const ReceivedEvent& event) { events.push_back(event); };
  for (size_t at = 0; at < text.size(); at += piece)
    EXPECT_TRUE(parser.feed(text.substr(at, piece), keep).ok());
  return events;
}

TEST(EventParser, ReadsWhatWeFormatHoweverItIsCut) {
  std::string text = ": comment\n" + format_event({"3-0", "stdout", "one\ntwo"}) +
                     format_event({"", "", "x"}) + "event: lost\n\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    auto events = parse_in_pieces(text, piece);
    ASSERT_EQ(events.size(), 2u) << piece;
    EXPECT_EQ(events[0].id, "3-0");
    EXPECT_EQ(events[0].name, "stdout");
    EXPECT_EQ(events[0].data, "one\ntwo");
    EXPECT_EQ(events[1].id, "3-0");
    EXPECT_EQ(events[1].name, "message");
    EXPECT_EQ(events[1].data, "x");
  }
}

TEST(EventParser, TakesEveryKindOfLineEnd) {
  for (size_t piece : {1, 2, 100})
    for (const char* text : {"data:a\r\n\r\ndata: b\r\n\r\n", "data:a\r\rdata: b\r\r"}) {
      auto events = parse_in_pieces(text, piece);
      ASSERT_EQ(events.size(), 2u) << text;
      EXPECT_EQ(events[0].data, "a");
      EXPECT_EQ(events[1].data, "b");
    }
}

TEST(EventParser, RefusesAnEventWithoutEnd) {
  EventParser parser;
  std::string piece(1 << 20, 'x');
  Result<void> fed;
  for (int i = 0; i < 64 && fed.ok(); ++i) fed = parser.feed(piece, [](const ReceivedEvent&) {});
  EXPECT_EQ(fed.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace atl::http
