// What a program in a sandbox may send to port 53.
#include <cstdint>

#include "base/check.h"
#include "egress/dns_message.h"
#include "egress/host_name.h"

using namespace atl::egress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  make_format_error({data, size});
  auto question = parse_dns_question({data, size});
  if (!question) return 0;
  ATOLL_CHECK(question->name.size() <= kMaxNameBytes && question->wire.size() <= size);
  std::string answer = make_dns_answer(*question, DnsStatus::kNoSuchName);
  ATOLL_CHECK(answer.size() == 12 + question->wire.size());
  if (auto name = HostName::parse(question->name))
    ATOLL_CHECK(HostName::parse(name->view()) == name);
  return 0;
}
