#include "api/failure.h"

#include <filesystem>
#include <map>
#include <regex>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "base/file.h"
#include "sandbox/limits.h"

namespace atl::api {
namespace {

// What inside atolld can give an answer.
constexpr std::string_view kFolders[] = {"api", "daemon", "isolate", "sandbox", "store"};
constexpr size_t kMaxSourceBytes = 1 << 20;

bool is_test(const std::string& path) {
  return path.ends_with("_test.cc") || path.find("/test_") != path.npos;
}

// Every reason that stands in the sources, and a file where it does.
std::map<std::string, std::string> reasons_in_sources() {
  const std::regex kReason("(?:with_reason\\(|,\\s+)\"([a-z]+(?:_[a-z]+)+)\"\\)");
  std::map<std::string, std::string> reasons;
  for (std::string_view folder : kFolders) {
    std::filesystem::recursive_directory_iterator files(std::string(ATOLL_SOURCES "/") +
                                                        std::string(folder));
    for (const auto& entry : files) {
      std::string path = entry.path().string();
      if (!path.ends_with(".cc") || is_test(path)) continue;
      auto text = read_file(path, kMaxSourceBytes);
      EXPECT_TRUE(text.ok()) << path;
      // refuse() and full() take their reason last; with_reason() takes nothing else.
      bool gives = text->find("with_reason") != text->npos || text->find("refuse(") != text->npos;
      if (!gives) continue;
      for (std::sregex_iterator it(text->begin(), text->end(), kReason), end; it != end; ++it)
        reasons.emplace((*it)[1], path);
    }
  }
  return reasons;
}

std::string remedy_of(const std::string& reason) {
  auto response = failure_response(Error(Code::kInvalid, "x").with_reason(reason), "r");
  auto body = boost::json::parse(response.body);
  return std::string(body.as_object().at("error").as_object().at("remedy").as_string());
}

TEST(Failure, EveryReasonOfTheCodeHasItsAdvice) {
  std::string without_advice = remedy_of("nobody_gives_this");
  auto reasons = reasons_in_sources();
  // The pattern still finds each of the ways in which one is written.
  for (const char* known : {"no_capacity", "missing_field", "isolation_unavailable", "host_full"})
    EXPECT_TRUE(reasons.contains(known)) << known;
  for (const auto& [reason, path] : reasons)
    EXPECT_NE(remedy_of(reason), without_advice) << reason << " in " << path;
}

TEST(Failure, EveryRefusalOfTheWardenHasItsAdvice) {
  std::string without_advice = remedy_of("nobody_gives_this");
  for (uint16_t i = 1; i <= warden::kLastRefusal; ++i) {
    std::string name(warden::refusal_name(static_cast<warden::Refusal>(i)));
    EXPECT_NE(remedy_of(name + "_unavailable"), without_advice) << name;
  }
}

TEST(Failure, SaysWhoseFaultItIs) {
  auto is_of_request = [](const http::Response& response) {
    return response.body.find(R"("cause":"request")") != std::string::npos;
  };
  auto of = [](std::string_view reason) {
    return failure_response(Error(Code::kInvalid, "x").with_reason(reason), "r");
  };
  EXPECT_TRUE(is_of_request(of("invalid_field")));
  EXPECT_FALSE(is_of_request(of("no_capacity")));
  EXPECT_FALSE(is_of_request(of("open_files_unavailable"))) << "the host cannot have it";
  EXPECT_TRUE(is_of_request(refusal_response(505, "malformed_request", "x", "r")));
  EXPECT_FALSE(is_of_request(refusal_response(503, "no_capacity", "x", "r")));
}

TEST(Failure, RetryAfterIsSaidWhereTryingAgainHelps) {
  auto of = [](std::string_view reason) {
    return failure_response(Error(Code::kExhausted, "x").with_reason(reason), "r");
  };
  EXPECT_EQ(of("no_capacity").status, 503);
  EXPECT_TRUE(of("no_capacity").headers.find("Retry-After").has_value());
  EXPECT_EQ(of("too_many_execs").status, 429);
  EXPECT_TRUE(of("too_many_execs").headers.find("Retry-After").has_value());
  EXPECT_EQ(of("disk_full").status, 507);
  EXPECT_EQ(of("disk_rate_unavailable").status, 400);
  EXPECT_FALSE(of("disk_rate_unavailable").headers.find("Retry-After").has_value());
}

}  // namespace
}  // namespace atl::api
