#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/base64.h"
#include "api/test_server.h"
#include "store/tar_writer.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::Method;

json::object body_of(const http::Response& response) {
  json::error_code error;
  json::value value = json::parse(response.body, error);
  EXPECT_FALSE(error) << response.body;
  return value.is_object() ? value.as_object() : json::object();
}

std::string code_of(const http::Response& response) {
  json::object body = body_of(response);
  const json::value* error = body.if_contains("error");
  return error ? std::string(error->as_object().at("code").as_string()) : "";
}

std::string header_of(const http::Response& response, std::string_view name) {
  return std::string(response.headers.find(name).value_or(""));
}

// One sandbox of a whole server with a fake agent.
class FilesApi : public testing::Test {
 protected:
  FilesApi() {
    auto response = server_.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
    EXPECT_EQ(response.status, 201) << response.body;
    id_ = body_of(response).at("id").as_string();
    base_ = "/v1/sandboxes/" + id_;
  }
  http::Response send(Method method, const std::string& path, std::string body = "") {
    return server_.send(method, base_ + path, std::move(body));
  }
  // With a body that is not JSON.
  http::Response put(const std::string& path, std::string bytes,
                     std::vector<std::pair<std::string, std::string>> more = {}) {
    return with(Method::kPut, path, std::move(more), std::move(bytes));
  }
  http::Response with(Method method, const std::string& path,
                      std::vector<std::pair<std::string, std::string>> more,
                      std::string bytes = "") {
    http::Headers headers{{"Authorization", "Bearer " + server_.key}};
    for (auto& [name, value] : more) headers.add(name, value);
    return server_.send_as(method, base_ + path, headers, std::move(bytes));
  }
  isolate::FakeFiles& inside() { return server_.bed.driver->files(*SandboxId::parse(id_)); }

  TestServer server_;
  std::string id_;
  std::string base_;
};

TEST_F(FilesApi, WrittenThenReadThenReplacedThenRemoved) {
  auto made = put("/files/home/user/a.txt?mode=0600", "hello");
  EXPECT_EQ(made.status, 201) << made.body;
  json::object entry = body_of(made);
  EXPECT_EQ(entry["path"], "/home/user/a.txt");
  EXPECT_EQ(entry["name"], "a.txt");
  EXPECT_EQ(entry["type"], "file");
  EXPECT_EQ(entry["size"], 5);
  EXPECT_EQ(entry["mode"], "0600");

  auto read = send(Method::kGet, "/files/home/user/a.txt");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, "hello");
  EXPECT_EQ(header_of(read, "Content-Type"), "application/octet-stream");
  EXPECT_EQ(header_of(read, "Content-Disposition"), "attachment");
  EXPECT_EQ(header_of(read, "Atoll-Mode"), "0600");
  EXPECT_EQ(header_of(read, "Last-Modified"), "Tue, 14 Nov 2023 22:13:20 GMT");
  EXPECT_EQ(header_of(read, "ETag"), header_of(made, "ETag"));

  auto head = send(Method::kHead, "/files/home/user/a.txt");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(header_of(head, "Content-Length"), "5");

  auto replaced = put("/files/home/user/a.txt", "other");
  EXPECT_EQ(replaced.status, 200) << replaced.body;
  EXPECT_NE(header_of(replaced, "ETag"), header_of(made, "ETag"));
  EXPECT_EQ(send(Method::kDelete, "/files/home/user/a.txt").status, 204);
  auto gone = send(Method::kGet, "/files/home/user/a.txt");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(code_of(gone), "file_not_found");
}

TEST_F(FilesApi, LargeBodiesStreamBothWays) {
  std::string bytes;
  for (size_t i = 0; i < 5'000'000; ++i) bytes += static_cast<char>(i * 31 + i / 256);
  EXPECT_EQ(put("/files/large", bytes).status, 201);
  auto read = send(Method::kGet, "/files/large");
  EXPECT_EQ(read.status, 200);
  EXPECT_TRUE(read.body == bytes);
}

TEST_F(FilesApi, OnlyIfItIsNew) {
  EXPECT_EQ(put("/files/a", "1", {{"If-None-Match", "*"}}).status, 201);
  auto refused = put("/files/a", "2", {{"If-None-Match", "*"}});
  EXPECT_EQ(refused.status, 412);
  EXPECT_EQ(code_of(refused), "exists");
  EXPECT_EQ(send(Method::kGet, "/files/a").body, "1");
}

struct RangeCase {
  std::string range;
  int status;
  std::string body;
  std::string content_range;
};

class Ranges : public FilesApi, public testing::WithParamInterface<RangeCase> {};

TEST_P(Ranges, AreServed) {
  put("/files/digits", "0123456789");
  auto read = with(Method::kGet, "/files/digits", {{"Range", GetParam().range}});
  EXPECT_EQ(read.status, GetParam().status);
  EXPECT_EQ(header_of(read, "Content-Range"), GetParam().content_range);
  if (read.status != 416) {
    EXPECT_EQ(read.body, GetParam().body);
  }
}

INSTANTIATE_TEST_SUITE_P(OfTenBytes, Ranges,
                         testing::Values(RangeCase{"bytes=0-0", 206, "0", "bytes 0-0/10"},
                                         RangeCase{"bytes=2-5", 206, "2345", "bytes 2-5/10"},
                                         RangeCase{"bytes=7-", 206, "789", "bytes 7-9/10"},
                                         RangeCase{"bytes=7-99", 206, "789", "bytes 7-9/10"},
                                         RangeCase{"bytes=-3", 206, "789", "bytes 7-9/10"},
                                         RangeCase{"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
                                         RangeCase{"bytes=10-", 416, "", "bytes */10"},
                                         RangeCase{"bytes=-0", 416, "", "bytes */10"},
                                         RangeCase{"bytes=5-2", 200, "0123456789", ""},
                                         RangeCase{"bytes=0-1,3-4", 200, "0123456789", ""},
                                         RangeCase{"bytes=99999999999999999999-", 200, "0123456789",
                                                   ""},
                                         RangeCase{"lines=0-1", 200, "0123456789", ""}));

TEST_F(FilesApi, PathsThatAreNotCleanAreRefused) {
  for (std::string path :
       {"/files/a/../b", "/files/%2e%2e/etc", "/files/a%2f..%2fb", "/files//etc/passwd",
        "/files/a/./b", "/files/a%00b", "/files/a%zz", "/files/a%2", "/files/..", "/files/a//"}) {
    auto refused = send(Method::kGet, path);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_EQ(code_of(refused), "invalid_path") << path;
  }
  auto long_name = send(Method::kGet, "/files/" + std::string(5000, 'a'));
  EXPECT_EQ(long_name.status, 400);
}

TEST_F(FilesApi, NamesOfAnyBytesWork) {
  EXPECT_EQ(put("/files/d/%ff%0d%0aX-Evil%3a%201", "raw").status, 201);
  auto read = send(Method::kGet, "/files/d/%ff%0d%0aX-Evil%3a%201");
  EXPECT_EQ(read.body, "raw");
  EXPECT_FALSE(read.headers.find("X-Evil"));
  json::object page = body_of(send(Method::kGet, "/files/d?list"));
  json::object entry = page["entries"].as_array().at(0).as_object();
  EXPECT_EQ(entry["name_base64"].as_string(), to_base64("\xff\r\nX-Evil: 1"));
  EXPECT_FALSE(entry.contains("name"));
}

TEST_F(FilesApi, ListsInPages) {
  for (int i = 0; i < 5; ++i) put("/files/d/" + std::to_string(i), "x");
  std::string cursor;
  std::string names;
  int pages = 0;
  do {
    auto response = send(Method::kGet, "/files/d?list&limit=2" + cursor);
    ASSERT_EQ(response.status, 200) << response.body;
    json::object page = body_of(response);
    for (const json::value& entry : page["entries"].as_array())
      names += std::string(entry.as_object().at("name").as_string());
    cursor = page["next_cursor"].is_string()
                 ? "&cursor=" + std::string(page["next_cursor"].as_string())
                 : "";
    ++pages;
  } while (!cursor.empty());
  EXPECT_EQ(names, "01234");
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(send(Method::kGet, "/files/d?list&cursor=nonsense").status, 400);
  std::string elsewhere = to_base64("/other/x");
  EXPECT_EQ(send(Method::kGet, "/files/d?list&cursor=" + elsewhere).status, 400);
}

TEST_F(FilesApi, DirectoriesMovesAndModes) {
  EXPECT_EQ(send(Method::kPost, "/files/d?mkdir").status, 201);
  EXPECT_EQ(send(Method::kPost, "/files/d?mkdir").status, 200);
  put("/files/d/a", "x");
  auto kept = send(Method::kDelete, "/files/d");
  EXPECT_EQ(kept.status, 409);
  EXPECT_EQ(code_of(kept), "not_empty");
  EXPECT_EQ(code_of(send(Method::kGet, "/files/d")), "is_directory");
  put("/files/b", "y");
  auto taken = send(Method::kPost, "/files/d/a?move", R"({"to":"/b"})");
  EXPECT_EQ(taken.status, 409);
  EXPECT_EQ(code_of(taken), "exists");
  EXPECT_EQ(send(Method::kPost, "/files/d/a?move", R"({"to":"/b","replace":true})").status, 200);
  EXPECT_EQ(send(Method::kGet, "/files/b").body, "x");
  EXPECT_EQ(send(Method::kPost, "/files/b?move", R"({"to":"../x"})").status, 400);
  auto changed = send(Method::kPost, "/files/b?chmod", R"({"mode":"0755"})");
  EXPECT_EQ(body_of(changed)["mode"], "0755") << changed.body;
  for (std::string mode : {"4755", "abc", "", "99999999"})
    EXPECT_EQ(send(Method::kPost, "/files/b?chmod", R"({"mode":")" + mode + "\"}").status, 400);
  EXPECT_EQ(send(Method::kPost, "/files/b").status, 400);
  EXPECT_EQ(send(Method::kDelete, "/files/d?recursive=true").status, 204);
}

TEST_F(FilesApi, WhatWentWrongInsideHasItsOwnReason) {
  EXPECT_EQ(code_of(put("/files/a.full", "x")), "disk_limit");
  EXPECT_EQ(put("/files/a.full", "x").status, 507);
  auto denied = send(Method::kGet, "/files/a.denied");
  EXPECT_EQ(denied.status, 403);
  EXPECT_EQ(code_of(denied), "permission_denied");
  EXPECT_EQ(code_of(send(Method::kGet, "/files/nothing?stat")), "file_not_found");
  EXPECT_EQ(send(Method::kGet, "/files/a?stat&user=%0a").status, 400);
}

TEST_F(FilesApi, ALyingInsideIsNotBelieved) {
  put("/files/d/x.outside", "x");
  auto listed = send(Method::kGet, "/files/d?list");
  EXPECT_EQ(listed.status, 502);
  EXPECT_EQ(code_of(listed), "bad_answer");
}

// The head was sent before the agent failed: only the end of the connection can tell.
TEST_F(FilesApi, ADownloadThatFailsInTheMiddleIsCutOff) {
  for (std::string name : {"a.cut", "a.lies"}) {
    put("/files/" + name, std::string(1'000'000, 'x'));
    auto client = http::Client::create("127.0.0.1", server_.port, test_timeout());
    http::Headers headers{{"Authorization", "Bearer " + server_.key}};
    auto read = client->send(Method::kGet, base_ + "/files/" + name, headers, "");
    EXPECT_FALSE(read.ok()) << name;
  }
}

TEST_F(FilesApi, PortsAreListed) {
  json::object body = body_of(send(Method::kGet, "/ports"));
  json::object port = body["ports"].as_array().at(0).as_object();
  EXPECT_EQ(port["port"], 8000);
  EXPECT_EQ(port["address"], "0.0.0.0");
}

std::string tar_of(const std::vector<std::pair<store::TarEntry, std::string>>& entries) {
  std::string text;
  for (const auto& [entry, bytes] : entries)
    text += store::tar_header(entry) + bytes + store::tar_padding(bytes.size());
  return text + store::tar_end();
}

store::TarEntry file_entry(std::string path, const std::string& bytes) {
  store::TarEntry entry;
  entry.path = std::move(path);
  entry.mode = 0644;
  entry.size = bytes.size();
  return entry;
}

TEST_F(FilesApi, AnArchiveGoesInAndComesOut) {
  std::string archive =
      tar_of({{file_entry("./a.txt", "hello"), "hello"}, {file_entry("sub/b.txt", "x"), "x"}});
  auto unpacked = put("/archive?path=/work", archive);
  ASSERT_EQ(unpacked.status, 200) << unpacked.body;
  EXPECT_EQ(body_of(unpacked)["entries"], 2);
  EXPECT_EQ(body_of(unpacked)["bytes"], 6);
  EXPECT_EQ(send(Method::kGet, "/files/work/sub/b.txt").body, "x");
  auto packed = send(Method::kGet, "/archive?path=/work");
  EXPECT_EQ(packed.status, 200);
  EXPECT_EQ(header_of(packed, "Content-Type"), "application/x-tar");
  auto again = put("/archive?path=/copy", packed.body);
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(send(Method::kGet, "/files/copy/a.txt").body, "hello");
}

TEST_F(FilesApi, ARefusedEntryLeavesNothing) {
  store::TarEntry link;
  link.path = "link";
  link.type = store::TarEntry::Type::kSymlink;
  link.target = "/etc";
  store::TarEntry hard;
  hard.path = "hard";
  hard.type = store::TarEntry::Type::kHardLink;
  hard.target = "../../etc/passwd";
  std::string good = "good";
  std::vector<std::string> archives = {
      tar_of({{file_entry("a", good), good}, {file_entry("../b", good), good}}),
      tar_of({{file_entry("a", good), good}, {file_entry("/etc/b", good), good}}),
      tar_of({{file_entry("a", good), good}, {link, ""}, {file_entry("link/b", good), good}}),
      tar_of({{file_entry("a", good), good}, {hard, ""}}),
      tar_of({{file_entry("a", good), good}, {file_entry("x/../../b", good), good}}),
  };
  for (const std::string& archive : archives) {
    auto refused = put("/archive?path=/work", archive);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(code_of(refused), "archive_entry_refused");
  }
  EXPECT_EQ(code_of(put("/archive?path=/work", "no archive at all")), "invalid_archive");
  EXPECT_TRUE(inside().entries().empty());
}

TEST_F(FilesApi, ArtifactsOutliveTheirSandbox) {
  put("/files/tmp/outputs/plot.png", "\x89PNG");
  put("/files/tmp/outputs/deep/table.csv", "a,b\n");
  put("/files/tmp/other", "not one");
  for (bool alive : {true, false}) {
    auto response = send(Method::kGet, "/artifacts");
    ASSERT_EQ(response.status, 200) << response.body;
    json::object listed = body_of(response);
    ASSERT_EQ(listed["artifacts"].as_array().size(), 2u);
    json::object second = listed["artifacts"].as_array().at(1).as_object();
    EXPECT_EQ(second["name"], "plot.png");
    EXPECT_EQ(second["type"], "image/png");
    EXPECT_EQ(second["size"], 4);
    EXPECT_EQ(second["sha256"], "0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543");
    EXPECT_EQ(send(Method::kGet, "/artifacts/deep/table.csv").body, "a,b\n");
    EXPECT_EQ(code_of(send(Method::kGet, "/artifacts/nothing")), "artifact_not_found");
    EXPECT_EQ(send(Method::kGet, "/artifacts/../other").status, 404);
    if (alive) {
      EXPECT_EQ(send(Method::kDelete, "").status, 204);
    }
  }
  auto nothing =
      server_.send(Method::kGet, "/v1/sandboxes/" + SandboxId::draw().string() + "/artifacts");
  EXPECT_EQ(code_of(nothing), "sandbox_not_found");
}

TEST_F(FilesApi, ASandboxThatDoesNotAnswerIsDeletedWithoutItsArtifacts) {
  server_.run_inside([&] { server_.bed.driver->kill_agent(*SandboxId::parse(id_)); });
  EXPECT_EQ(send(Method::kDelete, "").status, 204);
  EXPECT_EQ(send(Method::kGet, "/artifacts").status, 404);
}

bool has_no_sandbox_in_time(TestServer& server) {
  return eventually([&] {
    size_t left = 0;
    server.run_inside([&] { left = server.bed.sandboxes().all().size(); });
    return left == 0;
  });
}

TEST(RunApi, RunsOnceAndLeavesNothing) {
  TestServer server;
  auto ran = server.send(Method::kPost, "/v1/run", R"({"template":"python","cmd":["echo","hi"],
      "files":[{"path":"/tmp/outputs/a.txt","text":"kept"},
               {"path":"/home/user/b","base64":"AAE="}]})");
  ASSERT_EQ(ran.status, 200) << ran.body;
  json::object body = body_of(ran);
  EXPECT_EQ(body["stdout"], "hi\n");
  EXPECT_EQ(body["verdict"], "ok");
  json::object artifact = body["artifacts"].as_array().at(0).as_object();
  EXPECT_EQ(artifact["name"], "a.txt");
  EXPECT_EQ(artifact["base64"].as_string(), to_base64("kept"));
  std::string id(body["sandbox_id"].as_string());
  EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes/" + id).status, 404);
  EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes/" + id + "/artifacts/a.txt").body, "kept");
  // It is removed behind the answer.
  EXPECT_TRUE(has_no_sandbox_in_time(server));
}

TEST(RunApi, WhatIsWrongIsRefusedAndLeavesNothing) {
  TestServer server;
  for (std::string body :
       {R"({"template":"python"})", R"({"template":"python","cmd":["x"],"shell":"y"})",
        R"({"template":"python","cmd":["x"],"nonsense":1})",
        R"({"template":"python","cmd":["x"],"files":[{"path":"a","text":"x"}]})",
        R"({"template":"python","cmd":["x"],"files":[{"path":"/a"}]})",
        R"({"template":"python","cmd":["x"],"timeout_ms":"soon"})",
        R"({"template":"python","cmd":["x"],"cwd":"here"})",
        R"({"template":"python","cmd":["x"],"user":"a b"})",
        R"({"template":"python","cmd":["x"],"stdin_base64":"!"})",
        R"({"template":"python","cmd":["x"],"on_output_limit":"x"})",
        R"x({"template":"python","code":"print(1)"})x"}) {
    server.run_inside([&] { server.bed.driver->next_launch_error = Error(Code::kSystem, "made"); });
    EXPECT_EQ(server.send(Method::kPost, "/v1/run", body).status, 400) << body;
  }
  server.run_inside([&] { server.bed.driver->next_launch_error.reset(); });
  EXPECT_EQ(server.send(Method::kPost, "/v1/run", R"({"template":"none","cmd":["x"]})").status,
            404);
  auto full = server.send(Method::kPost, "/v1/run",
                          R"({"template":"python","cmd":["x"],
                              "files":[{"path":"/a.full","text":"x"}]})");
  EXPECT_EQ(full.status, 507) << full.body;
  EXPECT_TRUE(has_no_sandbox_in_time(server));
}

}  // namespace
}  // namespace atl::api
