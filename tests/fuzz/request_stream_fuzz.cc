// What a program in a sandbox may send on a connection of plain HTTP. The first byte says in which
// pieces it comes: what passes must not depend on that.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "egress/request_stream.h"

using namespace atl::egress;

namespace {

struct Outcome {
  size_t passed = 0;
  bool refused = false;
};

Outcome run(std::string_view bytes, size_t piece) {
  RequestStream stream(*HostName::parse("a.example"), 80);
  Outcome outcome;
  for (size_t end = std::min(piece, bytes.size());; end = std::min(end + piece, bytes.size())) {
    auto passed = stream.pass(bytes.substr(outcome.passed, end - outcome.passed));
    if (!passed) return {.passed = outcome.passed, .refused = true};
    outcome.passed += *passed;
    ATOLL_CHECK(outcome.passed <= end);
    if (end == bytes.size()) return outcome;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Outcome whole = run(bytes, size);
  Outcome pieces = run(bytes, 1 + data[0]);
  ATOLL_CHECK(whole.refused == pieces.refused);
  if (!whole.refused) ATOLL_CHECK(whole.passed == pieces.passed);
  return 0;
}
