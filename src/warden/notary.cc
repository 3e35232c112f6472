#include "warden/notary.h"

#include <fcntl.h>

#include "base/file.h"
#include "linux/powerless_program.h"
#include "linux/sealed_memory.h"
#include "warden/protocol.h"

namespace atl::warden {
namespace {

std::string key_file(const Host& host) { return host.state_dir + "/receipt.key"; }

Result<std::string> run(const Host& host, const char* action, int input) {
  std::string key = key_file(host);
  const char* arguments[] = {"atoll-notary", action, key.c_str(), nullptr};
  auto said = linux::run_without_rights(host.notary, arguments, input, kMaxReceiptBytes);
  if (!said) return std::move(said).error().with_context("atoll-notary");
  return said;
}

}  // namespace

Result<void> prepare_notary(const Host& host) {
  ATOLL_TRY(Fd nothing, open_file("/dev/null", O_RDONLY));
  ATOLL_TRY_VOID(run(host, "prepare", nothing.get()));
  return {};
}

Result<std::string> run_notary(const Host& host, int facts) { return run(host, "sign", facts); }

Result<std::string> sign_manifest(const Host& host, const Digest& digest) {
  std::string bytes(digest.bytes().begin(), digest.bytes().end());
  ATOLL_TRY(Fd input, linux::make_sealed_memory("atoll-digest", bytes));
  return run(host, "seal", input.get());
}

}  // namespace atl::warden
