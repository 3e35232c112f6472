#include "cli/receipt.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

namespace atl::cli {
namespace {

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                               reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

// Signs as atoll-notary does.
class Signer {
 public:
  Signer() : key_(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")) {}
  ~Signer() { EVP_PKEY_free(key_); }

  std::string public_key() const {
    unsigned char bytes[32];
    size_t length = sizeof bytes;
    EXPECT_EQ(EVP_PKEY_get_raw_public_key(key_, bytes, &length), 1);
    return base64({reinterpret_cast<char*>(bytes), length});
  }
  std::string sign(const std::string& document, const std::string& readable) const {
    unsigned char bytes[64];
    size_t length = sizeof bytes;
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EXPECT_EQ(EVP_DigestSignInit(context, nullptr, nullptr, nullptr, key_), 1);
    EXPECT_EQ(
        EVP_DigestSign(context, bytes, &length,
                       reinterpret_cast<const unsigned char*>(document.data()), document.size()),
        1);
    EVP_MD_CTX_free(context);
    return "{\"receipt\":" + readable + ",\"signature\":\"" +
           base64({reinterpret_cast<char*>(bytes), length}) + "\",\"signed\":\"" +
           base64(document) + "\"}";
  }

 private:
  EVP_PKEY* key_;
};

constexpr const char* kDocument = R"({"version":1,"sandbox":"sabc"})";

TEST(Receipt, AGoodOneIsAccepted) {
  Signer signer;
  auto receipt = verify_receipt(signer.sign(kDocument, kDocument), signer.public_key() + "\n");
  ASSERT_TRUE(receipt.ok()) << receipt.error().message();
  EXPECT_EQ(receipt->at("sandbox"), "sabc");
}

TEST(Receipt, EveryForgeryIsRefused) {
  Signer signer, stranger;
  std::string good = signer.sign(kDocument, kDocument);
  EXPECT_FALSE(verify_receipt(good, stranger.public_key()).ok());
  EXPECT_FALSE(verify_receipt(signer.sign(kDocument, R"({"version":1})"), signer.public_key()).ok())
      << "what is shown is not what was signed";
  std::string other = signer.sign(R"({"version":2})", kDocument);
  EXPECT_FALSE(verify_receipt(other, signer.public_key()).ok());
  for (size_t i = 0; i + 1 < good.size(); i += 7) {
    if (good[i + 1] == '=') continue;  // its last bits mean nothing
    std::string bent = good;
    bent[i] = bent[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(verify_receipt(bent, signer.public_key()).ok()) << i;
  }
  for (const char* text : {"", "{}", "[]", R"({"signed":1})", R"({"signed":"!!!!"})"})
    EXPECT_FALSE(verify_receipt(text, signer.public_key()).ok()) << text;
  EXPECT_FALSE(verify_receipt(good, "no key").ok());
}

}  // namespace
}  // namespace atl::cli
