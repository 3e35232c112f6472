// atoll-notary prepare KEY   makes the key of receipts unless there is one
// atoll-notary sign KEY      facts on standard input, the signed receipt on standard output
// atoll-notary seal KEY      the digest of a snapshot's manifest, 32 bytes, on standard input; the
//                            public key and the signature of it, 96 bytes, on standard output
//
// Started by the warden for one answer. It is the only program that reads the key.
#include <stdio.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "notary/document.h"
#include "notary/signing_key.h"

namespace {

using namespace atl;

constexpr size_t kMaxFactsBytes = 512 * 1024;
constexpr size_t kDigestBytes = 32;
// As in store/signature.h. No receipt begins so.
constexpr std::string_view kManifestPrefix = "atoll snapshot manifest 1\n";

Result<void> sign(const std::string& path) {
  ATOLL_TRY(notary::SigningKey key, notary::SigningKey::open(path));
  ATOLL_TRY(std::string facts, read_all(STDIN_FILENO, kMaxFactsBytes));
  ATOLL_TRY(std::string document, notary::make_document(facts));
  ATOLL_TRY(std::string signature, key.sign(document));
  // `receipt` is for reading; `signed` holds the very bytes that the signature is over.
  std::string answer = "{\"receipt\":" + document + ",\"algorithm\":\"Ed25519\",\"public_key\":\"" +
                       notary::to_base64(key.public_key()) + "\",\"signature\":\"" +
                       notary::to_base64(signature) + "\",\"signed\":\"" +
                       notary::to_base64(document) + "\"}\n";
  return write_all(STDOUT_FILENO, answer);
}

Result<void> seal(const std::string& path) {
  ATOLL_TRY(notary::SigningKey key, notary::SigningKey::open(path));
  ATOLL_TRY(std::string digest, read_all(STDIN_FILENO, kDigestBytes + 1));
  if (digest.size() != kDigestBytes) return Error(Code::kInvalid, "not a digest");
  ATOLL_TRY(std::string signature, key.sign(std::string(kManifestPrefix) + digest));
  return write_all(STDOUT_FILENO, key.public_key() + signature);
}

Result<void> run(int argc, char** argv) {
  std::string action = argc == 3 ? argv[1] : "";
  if (action == "sign") return sign(argv[2]);
  if (action == "seal") return seal(argv[2]);
  if (action != "prepare")
    return Error(Code::kInvalid, "usage: atoll-notary prepare|sign|seal KEY");
  ATOLL_TRY_VOID(notary::SigningKey::open_or_create(argv[2]));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Result<void> result = run(argc, argv);
  if (result) return 0;
  fprintf(stderr, "atoll-notary: %s\n", result.error().message().c_str());
  return 1;
}
