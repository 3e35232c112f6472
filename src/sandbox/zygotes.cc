#include "sandbox/zygotes.h"

#include <boost/asio/steady_timer.hpp>

#include "agent/channel_protocol.h"
#include "agent/imprint_protocol.h"
#include "base/log.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::hours kLongestUse{1};
constexpr uint64_t kMostCopies = 10'000;
constexpr std::chrono::minutes kFailurePause{5};
constexpr std::chrono::seconds kLongestTaking{60};
constexpr uint32_t kChannel = 2;
constexpr size_t kMaxReasonBytes = 200;
// The first bytes of an imprint; what begins otherwise says why there is none.
constexpr std::string_view kMagic = "altprint";

using isolate::AgentLink;
using isolate::ImprintFile;

struct Incoming {
  ImprintFile file;
  std::string start = {};  // its first bytes
};

Result<void> take_data(Incoming& incoming, AgentLink& link, std::string_view payload) {
  ATOLL_TRY(std::string_view data, agent::decode_channel_data(payload));
  if (incoming.start.size() < kMaxReasonBytes)
    incoming.start += data.substr(0, kMaxReasonBytes - incoming.start.size());
  ATOLL_TRY_VOID(incoming.file.append(data));
  uint64_t credit = incoming.file.bytes() + agent::kChannelWindowBytes;
  link.send(agent::encode_channel_credit(kChannel, credit));
  return {};
}

// Frames of the exec, which ends while its memory is read, say nothing new.
Task<Result<void>> receive(Incoming& incoming, AgentLink& link) {
  while (true) {
    ATOLL_CO_TRY(agent::Frame frame, co_await link.read());
    if (frame.number != kChannel) continue;
    if (frame.type == agent::FrameType::kChannelData)
      ATOLL_CO_TRY_VOID(take_data(incoming, link, frame.payload));
    if (frame.type != agent::FrameType::kChannelClose) continue;
    ATOLL_CO_TRY(agent::ChannelClose close, agent::decode_channel_close(frame.payload));
    if (close.system_errno != 0)
      co_return Error::from_errno("take an imprint: " + close.operation, close.system_errno);
    co_return Result<void>();
  }
}

}  // namespace

Imprint Zygotes::find(const std::string& name, const Basis& basis) {
  auto found = zygotes_.find(name);
  if (found == zygotes_.end() || found->second.basis != basis || !found->second.imprint)
    return nullptr;
  ++found->second.copies;
  ++counts_.copies;
  return found->second.imprint;
}

bool Zygotes::wants(const std::string& name, const Basis& basis) const {
  auto found = zygotes_.find(name);
  if (found == zygotes_.end() || found->second.basis != basis) return true;
  const Zygote& zygote = found->second;
  auto age = clock_.steady_now() - zygote.made_at;
  if (!zygote.imprint) return age > kFailurePause;
  return age > kLongestUse || zygote.copies >= kMostCopies;
}

Task<Result<void>> Zygotes::make(std::string name, Basis basis, std::shared_ptr<AgentLink> link,
                                 uint32_t exec) {
  boost::asio::steady_timer patience(executor_, kLongestTaking);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  ATOLL_CO_TRY(ImprintFile file, ImprintFile::create());
  Incoming incoming{std::move(file)};
  link->send(agent::encode_open_imprint(kChannel, exec));
  ATOLL_CO_TRY_VOID(co_await receive(incoming, *link));
  if (!incoming.start.starts_with(kMagic))
    co_return Error(Code::kUnsupported, "the interpreter cannot be copied: " + incoming.start);
  ATOLL_CO_TRY_VOID(incoming.file.seal());
  auto shared = std::make_shared<const ImprintFile>(std::move(incoming.file));
  log_info("zygote made", {{"template", name}, {"bytes", shared->bytes()}});
  zygotes_.insert_or_assign(name, Zygote{basis, std::move(shared), clock_.steady_now()});
  ++counts_.made;
  co_return Result<void>();
}

void Zygotes::fail(const std::string& name, const Basis& basis, const Error& why) {
  log_warning("a template starts cold", {{"template", name}, why});
  zygotes_.insert_or_assign(name, Zygote{basis, nullptr, clock_.steady_now()});
  ++counts_.failures;
}

size_t Zygotes::size() const {
  size_t count = 0;
  for (const auto& [name, zygote] : zygotes_) count += zygote.imprint != nullptr;
  return count;
}

agent::Start zygote_start(agent::Start waiting) {
  for (std::string& variable : waiting.environment)
    for (std::string_view name : {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "MKL_NUM_THREADS="})
      if (variable.starts_with(name)) variable = std::string(name) + "1";
  // Of a thread that a module starts and ends while it is imported, the C library keeps a stack and
  // an arena, with reserved memory that cannot be copied.
  waiting.environment.push_back(
      "GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.pthread.stack_cache_size=0");
  waiting.environment.push_back("ATOLL_ZYGOTE=1");
  return waiting;
}

}  // namespace atl::sandbox
