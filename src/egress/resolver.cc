#include "egress/resolver.h"

#include <ares.h>
#include <netdb.h>
#include <sys/time.h>

#include <algorithm>

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr int kTryMs = 2000;
constexpr int kTries = 2;
constexpr size_t kMaxAddresses = 16;
constexpr std::chrono::seconds kLongestLife{60};
constexpr std::chrono::milliseconds kLongestPause{1000};

Error failed(int status) {
  bool none = status == ARES_ENOTFOUND || status == ARES_ENODATA;
  return Error(none ? Code::kNotFound : Code::kUnavailable, ares_strerror(status))
      .with_reason(none ? "name_not_found" : "dns_failed");
}

Resolved collect(const ares_addrinfo* found) {
  Resolved resolved{.addresses = {}, .lifetime = kLongestLife};
  for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
    auto address = Address::from_sockaddr(node->ai_addr, node->ai_addrlen);
    if (!address || resolved.addresses.size() >= kMaxAddresses) continue;
    resolved.addresses.push_back(*address);
    resolved.lifetime = std::min(resolved.lifetime, std::chrono::seconds(node->ai_ttl));
  }
  return resolved;
}

}  // namespace

struct Resolver::Watch {
  Watch(asio::any_io_executor executor, int fd) : descriptor(executor, fd) {}
  // c-ares closes the socket itself.
  ~Watch() { (void)descriptor.release(); }
  asio::posix::stream_descriptor descriptor;
  bool reads = false, writes = false;  // is being waited for
  bool wants_read = false, wants_write = false;
};

struct Resolver::Question {
  explicit Question(asio::any_io_executor executor)
      : done(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer done;
  bool finished = false;
  Result<Resolved> result = Error(Code::kUnavailable, "no answer").with_reason("dns_failed");
};

Resolver::Resolver(asio::any_io_executor executor)
    : executor_(executor), timer_(executor), alive_(std::make_shared<bool>(true)) {}

Result<std::unique_ptr<Resolver>> Resolver::create(asio::any_io_executor executor,
                                                   const std::string& servers) {
  std::unique_ptr<Resolver> resolver(new Resolver(executor));
  int status = ares_library_init(ARES_LIB_INIT_ALL);
  if (status != ARES_SUCCESS) return failed(status);
  ares_options options = {};
  options.timeout = kTryMs;
  options.tries = kTries;
  options.sock_state_cb = &Resolver::on_socket;
  options.sock_state_cb_data = resolver.get();
  status = ares_init_options(&resolver->channel_, &options,
                             ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
  if (status == ARES_SUCCESS && !servers.empty())
    status = ares_set_servers_ports_csv(resolver->channel_, servers.c_str());
  if (status != ARES_SUCCESS) return failed(status);
  return resolver;
}

Resolver::~Resolver() {
  *alive_ = false;
  watches_.clear();
  if (channel_ != nullptr) ares_destroy(channel_);
  ares_library_cleanup();
}

Task<Result<Resolved>> Resolver::resolve(HostName name) {
  auto question = std::make_shared<Question>(executor_);
  ares_addrinfo_hints hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = ARES_AI_NOSORT;
  ++open_questions_;
  // Kept by the callback, which comes once, also when the channel is destroyed.
  auto* kept = new std::shared_ptr<Question>(question);
  // With a final dot: search domains are not ours to add.
  std::string full = name.string() + ".";
  ares_getaddrinfo(channel_, full.c_str(), nullptr, &hints, &Resolver::on_answer, kept);
  arm_timer();
  if (!question->finished) co_await question->done.async_wait(kToken);
  --open_questions_;
  co_return std::move(question->result);
}

void Resolver::on_answer(void* kept, int status, int, ares_addrinfo* found) {
  std::unique_ptr<std::shared_ptr<Question>> question(
      static_cast<std::shared_ptr<Question>*>(kept));
  if (status == ARES_SUCCESS && found != nullptr && found->nodes != nullptr)
    (*question)->result = collect(found);
  else
    (*question)->result = failed(status == ARES_SUCCESS ? ARES_ENODATA : status);
  if (found != nullptr) ares_freeaddrinfo(found);
  (*question)->finished = true;
  (*question)->done.cancel();
}

void Resolver::on_socket(void* self, int fd, int readable, int writable) {
  static_cast<Resolver*>(self)->watch(fd, readable != 0, writable != 0);
}

void Resolver::watch(int fd, bool readable, bool writable) {
  if (!*alive_) return;
  auto found = watches_.find(fd);
  if (!readable && !writable) {
    if (found == watches_.end()) return;
    boost::system::error_code ignored;
    found->second->descriptor.cancel(ignored);
    (void)found->second->descriptor.release();
    watches_.erase(found);
    return;
  }
  if (found == watches_.end())
    found = watches_.emplace(fd, std::make_shared<Watch>(executor_, fd)).first;
  std::shared_ptr<Watch> watched = found->second;
  watched->wants_read = readable;
  watched->wants_write = writable;
  if (readable && !watched->reads) wait_for(watched, false);
  if (writable && !watched->writes) wait_for(watched, true);
}

void Resolver::wait_for(std::shared_ptr<Watch> watched, bool writing) {
  (writing ? watched->writes : watched->reads) = true;
  int fd = watched->descriptor.native_handle();
  auto kind = writing ? asio::posix::stream_descriptor::wait_write
                      : asio::posix::stream_descriptor::wait_read;
  auto ready = [this, alive = alive_, watched, writing, fd](boost::system::error_code error) {
    (writing ? watched->writes : watched->reads) = false;
    if (error || !*alive || !watches_.contains(fd) || watches_[fd] != watched) return;
    ares_process_fd(channel_, writing ? ARES_SOCKET_BAD : fd, writing ? fd : ARES_SOCKET_BAD);
    bool still = watches_.contains(fd) && watches_[fd] == watched;
    bool wanted = writing ? watched->wants_write : watched->wants_read;
    bool waits = writing ? watched->writes : watched->reads;
    if (still && wanted && !waits) wait_for(watched, writing);
  };
  watched->descriptor.async_wait(kind, ready);
}

// c-ares tries again only when it is looked after.
void Resolver::arm_timer() {
  timeval longest = {.tv_sec = kLongestPause.count() / 1000, .tv_usec = 0}, room = {};
  const timeval* next = ares_timeout(channel_, &longest, &room);
  auto pause = std::chrono::seconds(next->tv_sec) + std::chrono::microseconds(next->tv_usec);
  timer_.expires_after(pause);
  timer_.async_wait([this, alive = alive_](boost::system::error_code error) {
    if (error || !*alive) return;
    ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (open_questions_ > 0) arm_timer();
  });
}

}  // namespace atl::egress
