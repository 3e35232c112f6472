#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "builder/oci_layout.h"
#include "builder/oci_manifest.h"
#include "builder/registry.h"
#include "builder/registry_client.h"
#include "builder/test_archive_test.h"
#include "store/sha256.h"

namespace atl::builder {
namespace {

class OciTest : public TreeTest {
 protected:
  OciTest() { std::filesystem::create_directories(layout() + "/blobs/sha256"); }
  std::string layout() const { return directory_ + "/root"; }
  // Gives its descriptor.
  std::string add_blob(const std::string& text) {
    std::string digest = store::sha256(text).string();
    EXPECT_TRUE(replace_file(layout() + "/blobs/sha256/" + digest, text, 0644).ok());
    return "{\"digest\":\"sha256:" + digest + "\",\"size\":" + std::to_string(text.size());
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(replace_file(layout() + "/" + name, text, 0644).ok());
  }
  Result<std::vector<Fd>> open() {
    ATOLL_TRY(Fd directory, open_file(layout(), O_RDONLY | O_DIRECTORY));
    return open_layers(directory.get());
  }
};

TEST_F(OciTest, ChoosesThePlatformAndOpensItsLayers) {
  std::string mine = add_blob("{\"layers\":[" + add_blob("one") + "}," + add_blob("two") + "}]}");
  std::string other = add_blob("{\"layers\":[]}");
  std::string index =
      add_blob("{\"manifests\":[" + other +
               ",\"platform\":{\"os\":\"windows\",\"architecture\":\"amd64\"}}," + other +
               ",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}}," + mine +
               ",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}");
  write("index.json", "{\"manifests\":[" + index + "}]}");
  auto layers = open();
  ASSERT_TRUE(layers.ok()) << layers.error().message();
  ASSERT_EQ(layers->size(), 2u);
  EXPECT_EQ(*read_all((*layers)[0].get()), "one");
  EXPECT_EQ(*read_all((*layers)[1].get()), "two");
}

TEST_F(OciTest, RefusesABlobWithOtherBytes) {
  std::string layer = add_blob("good");
  write("blobs/sha256/" + store::sha256("good").string(), "evil");
  write("index.json", "{\"manifests\":[" + add_blob("{\"layers\":[" + layer + "}]}") + "}]}");
  auto layers = open();
  ASSERT_FALSE(layers.ok());
  EXPECT_EQ(layers.error().code(), Code::kInvalid);
}

TEST_F(OciTest, RefusesWhatIsNotThereAndWhatIsNoImage) {
  EXPECT_FALSE(open().ok());
  std::string digest(64, 'a');
  write("index.json", "{\"manifests\":[{\"digest\":\"sha256:" + digest + "\",\"size\":1}]}");
  EXPECT_FALSE(open().ok());
  for (const char* text : {"", "[]", "{}", "{\"manifests\":[]}", "{\"layers\":[{}]}",
                           "{\"layers\":[{\"digest\":\"sha256:../x\",\"size\":1}]}",
                           "{\"layers\":[{\"digest\":\"md5:00\",\"size\":1}]}"}) {
    write("index.json", text);
    EXPECT_FALSE(open().ok()) << text;
  }
}

TEST_F(OciTest, AnIndexOfItselfEnds) {
  std::string text = "{\"manifests\":[";
  for (int i = 0; i < 8; ++i) text = "{\"manifests\":[" + add_blob(i == 0 ? text : text + "}]}");
  write("index.json", text + "}]}");
  EXPECT_FALSE(open().ok());
}

TEST_F(OciTest, OpensWhatDockerSaves) {
  std::filesystem::create_directories(layout() + "/abc");
  write("abc/layer.tar", "one");
  ASSERT_EQ(symlink("../abc/layer.tar", (layout() + "/abc/again.tar").c_str()), 0);
  write("manifest.json", "[{\"Layers\":[\"abc/layer.tar\",\"abc/again.tar\"]}]");
  auto layers = open();
  ASSERT_TRUE(layers.ok()) << layers.error().message();
  EXPECT_EQ(*read_all((*layers)[1].get()), "one");
  write("manifest.json", "[{\"Layers\":[\"../outside\"]}]");
  EXPECT_FALSE(open().ok()) << "it must not lead out";
}

TEST(Reference, IsTakenApart) {
  auto plain = parse_reference("python:3.11");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "registry-1.docker.io");
  EXPECT_EQ(plain->repository, "library/python");
  EXPECT_EQ(plain->version, "3.11");
  auto own = parse_reference("localhost:5000/team/app@sha256:" + std::string(64, 'a'));
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->host, "localhost:5000");
  EXPECT_EQ(own->repository, "team/app");
  EXPECT_EQ(own->version, "sha256:" + std::string(64, 'a'));
  EXPECT_EQ(parse_reference("ghcr.io/a/b")->version, "latest");
  EXPECT_FALSE(parse_reference("ghcr.io/a@md5:00").ok());
  EXPECT_FALSE(parse_reference("ghcr.io/../x").ok());
}

TEST(Credentials, AreFoundByHost) {
  const char* text = "{\"auths\":{\"r.example\":{\"auth\":\"dTpw\"}}}";
  EXPECT_EQ(*find_credentials(text, "r.example"), "dTpw");
  EXPECT_EQ(*find_credentials(text, "other.example"), "");
  EXPECT_FALSE(find_credentials("nonsense", "r.example").ok());
}

TEST(Challenge, IsTakenApart) {
  const char* text = " Bearer realm=\"https://auth.example/token\",service=\"r.example\"";
  EXPECT_EQ(challenge_field(text, "realm"), "https://auth.example/token");
  EXPECT_EQ(challenge_field(text, "service"), "r.example");
  EXPECT_EQ(challenge_field(text, "scope"), "");
}

}  // namespace
}  // namespace atl::builder
