#include "store/snapshot_pack.h"

#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "base/file.h"
#include "store/part_writer.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr size_t kStep = 4096;

// Signs as atoll-notary does.
class Signer {
 public:
  explicit Signer(char seed) {
    std::string bytes(kPublicKeyBytes, seed);
    key_.reset(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, unsigned_bytes(bytes),
                                            bytes.size()));
    size_t length = public_key_.size();
    EVP_PKEY_get_raw_public_key(key_.get(), unsigned_bytes(public_key_), &length);
  }
  const std::string& public_key() const { return public_key_; }
  std::string seal(std::string_view body) const {
    Digest digest = sha256(body);
    std::string said(kManifestPrefix);
    said.append(digest.bytes().begin(), digest.bytes().end());
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                    EVP_MD_CTX_free);
    std::string signature(kSignatureBytes, '\0');
    size_t length = signature.size();
    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get());
    EVP_DigestSign(context.get(), unsigned_bytes(signature), &length, unsigned_bytes(said),
                   said.size());
    return public_key_ + signature;
  }

 private:
  static unsigned char* unsigned_bytes(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
  }
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::string public_key_ = std::string(kPublicKeyBytes, '\0');
};

std::string random_bytes(size_t count, unsigned seed) {
  std::mt19937_64 numbers(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(numbers());
  return bytes;
}

class SnapshotPackTest : public testing::Test {
 protected:
  // The file of a snapshot that holds these bytes.
  std::string make_pack(const std::string& content, const Signer& signer) {
    BlobKeeper::Hold hold(keeper_);
    PartWriter writer(hold);
    EXPECT_TRUE(writer.add(content).ok());
    EXPECT_TRUE(writer.finish().ok());
    SnapshotManifest manifest{.image = sha256("image")};
    manifest.template_name = "python";
    manifest.label = "label";
    manifest.disk_bytes = 1 << 30;
    manifest.parts = writer.parts();
    std::string body = encode_body(manifest);
    std::string file = signed_manifest(body, signer.seal(body));
    manifest_bytes_ = file.size();
    for (const SnapshotPart& part : parts_of_file(manifest))
      file += read_all(blobs_->open(part.digest)->get(), part.bytes).value();
    return file;
  }

  Result<void> read(std::string_view file, size_t piece = 64 * 1024) {
    parts_seen_ = 0;
    auto begin = [](const SnapshotManifest&) { return Result<void>(); };
    auto part = [this](const SnapshotPart&, std::string_view) {
      ++parts_seen_;
      return Result<void>();
    };
    SnapshotPackReader reader({signer_.public_key()}, {begin, part});
    for (size_t done = 0; done < file.size(); done += piece)
      ATOLL_TRY_VOID(reader.add(file.substr(done, piece)));
    ATOLL_TRY_VOID(reader.finish());
    manifest_ = reader.manifest();
    return {};
  }

  TestDirectory directory_;
  std::unique_ptr<DirectoryBlobs> blobs_ = DirectoryBlobs::open(directory_ / "blobs", 0).value();
  BlobKeeper keeper_{*blobs_};
  Signer signer_{'a'}, stranger_{'b'};
  std::string content_ = random_bytes(3 << 20, 7) + std::string(9 << 20, 'z');
  size_t manifest_bytes_ = 0;
  size_t parts_seen_ = 0;
  SnapshotManifest manifest_{.image = sha256("")};
};

TEST_F(SnapshotPackTest, IsReadAsItWasWrittenInPiecesOfAnySize) {
  std::string file = make_pack(content_, signer_);
  for (size_t piece : {size_t{1} << 30, size_t{64} << 10, size_t{777}}) {
    auto done = read(file, piece);
    ASSERT_TRUE(done.ok()) << done.error().message();
    std::string held;
    for (const SnapshotPart& part : manifest_.parts) held += read_part(*blobs_, part).value();
    EXPECT_TRUE(held == content_);
    EXPECT_EQ(manifest_.template_name, "python");
    EXPECT_LT(parts_seen_, manifest_.parts.size()) << "equal parts are there once";
  }
  EXPECT_LT(file.size(), content_.size() / 3);
}

TEST_F(SnapshotPackTest, EveryByteOfTheManifestThatIsFlippedIsSeen) {
  std::string file = make_pack(content_, signer_);
  for (size_t i = 0; i < manifest_bytes_; ++i) {
    std::string flipped = file;
    flipped[i] = static_cast<char>(~flipped[i]);
    EXPECT_FALSE(read(flipped).ok()) << i;
    EXPECT_EQ(parts_seen_, 0u) << i;
    flipped[i] = static_cast<char>(file[i] ^ 1);
    EXPECT_FALSE(read(flipped).ok()) << i;
  }
}

TEST_F(SnapshotPackTest, WhatIsCutOrFlippedAtAnyBlockIsRefused) {
  std::string file = make_pack(content_, signer_);
  for (size_t end = 0; end < file.size(); end += kStep) {
    auto cut = read(std::string_view(file).substr(0, end), 1 << 30);
    ASSERT_FALSE(cut.ok()) << end;
    EXPECT_EQ(cut.error().reason(), "snapshot_refused");
    std::string flipped = file;
    flipped[end] = static_cast<char>(flipped[end] ^ 1);
    EXPECT_FALSE(read(flipped, 1 << 30).ok()) << end;
  }
  EXPECT_FALSE(read(std::string_view(file).substr(0, file.size() - 1)).ok());
  EXPECT_EQ(read(file + "x").error().reason(), "snapshot_refused");
}

TEST_F(SnapshotPackTest, EveryPartThatIsCutShortIsRefused) {
  std::string file = make_pack(content_, signer_);
  ASSERT_TRUE(read(file).ok());
  size_t begin = manifest_bytes_;
  for (const SnapshotPart& part : parts_of_file(manifest_)) {
    for (size_t kept = 0; kept < part.bytes; kept += kStep) {
      std::string cut = file.substr(0, begin + kept) + file.substr(begin + part.bytes);
      EXPECT_FALSE(read(cut, 1 << 30).ok()) << begin << " " << kept;
    }
    begin += part.bytes;
  }
  EXPECT_EQ(begin, file.size());
}

TEST_F(SnapshotPackTest, WhatIsMixedUnsignedOrForeignIsRefused) {
  std::string file = make_pack(content_, signer_);
  std::string own_parts = file.substr(manifest_bytes_);
  std::string own_manifest = file.substr(0, manifest_bytes_);
  std::string other = make_pack(random_bytes(8 << 20, 8), signer_);
  EXPECT_EQ(read(own_manifest + other.substr(manifest_bytes_)).error().reason(),
            "snapshot_refused");
  EXPECT_EQ(read(own_parts).error().reason(), "snapshot_refused");
  std::string unsigned_one = own_manifest;
  unsigned_one.replace(unsigned_one.size() - kSignatureBytes, kSignatureBytes, kSignatureBytes, 0);
  EXPECT_EQ(read(unsigned_one + own_parts).error().reason(), "snapshot_refused");
  std::string foreign = make_pack(content_, stranger_);
  EXPECT_EQ(read(foreign).error().reason(), "snapshot_untrusted");
  // The key of one and the signature of another.
  std::string borrowed = foreign;
  borrowed.replace(manifest_bytes_ - kManifestSealBytes, kPublicKeyBytes, signer_.public_key());
  EXPECT_EQ(read(borrowed).error().reason(), "snapshot_refused");
  EXPECT_FALSE(read("").ok());
}

TEST_F(SnapshotPackTest, OnlyWhatIsNewIsStored) {
  auto stored = [this](const std::string& content) {
    BlobKeeper::Hold hold(keeper_);
    PartWriter writer(hold);
    // In pieces that break elsewhere.
    for (size_t done = 0; done < content.size(); done += 1'000'003)
      EXPECT_TRUE(writer.add(std::string_view(content).substr(done, 1'000'003)).ok());
    EXPECT_TRUE(writer.finish().ok());
    return writer.new_bytes();
  };
  std::string content = random_bytes(64 << 20, 9);
  EXPECT_GE(stored(content), content.size());
  EXPECT_EQ(stored(content), 0u);
  content.insert(20 << 20, "one more line\n");
  EXPECT_LT(stored(content), content.size() / 10);
}

TEST(SignatureTest, KeysThatAreBelieved) {
  TestDirectory directory;
  Signer own('a'), other('b');
  auto base64 = [](const std::string& key) {
    std::string text(45, '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                    reinterpret_cast<const unsigned char*>(key.data()),
                    static_cast<int>(key.size()));
    return text.substr(0, 44);
  };
  EXPECT_FALSE(read_trusted_keys(directory.path()).ok());
  ASSERT_TRUE(replace_file(directory / "receipt.pub", base64(own.public_key()) + "\n", 0644).ok());
  EXPECT_EQ(read_trusted_keys(directory.path()).value(), PublicKeys{own.public_key()});
  std::string list = "# hosts\n\n" + base64(other.public_key()) + " # the other one\n";
  ASSERT_TRUE(replace_file(directory / "trusted-keys", list, 0644).ok());
  EXPECT_EQ(read_trusted_keys(directory.path()).value(),
            (PublicKeys{own.public_key(), other.public_key()}));
  ASSERT_TRUE(replace_file(directory / "trusted-keys", "nonsense\n", 0644).ok());
  EXPECT_EQ(read_trusted_keys(directory.path()).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace atl::store
