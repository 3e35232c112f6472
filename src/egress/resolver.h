// Resolver: the addresses of a name that a rule allows, asked of the host's own resolvers by
// c-ares. The only place from which a question leaves. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "egress/address.h"
#include "egress/host_name.h"
#include "egress/task.h"

struct ares_channeldata;
struct ares_addrinfo;

namespace atl::egress {

struct Resolved {
  std::vector<Address> addresses;
  std::chrono::seconds lifetime{0};
};

class Resolver {
 public:
  // `servers`: "address[:port]" by commas; empty: those of /etc/resolv.conf.
  static Result<std::unique_ptr<Resolver>> create(boost::asio::any_io_executor executor,
                                                  const std::string& servers);
  ~Resolver();
  Resolver(const Resolver&) = delete;

  // kNotFound with reason name_not_found, kUnavailable with reason dns_failed.
  Task<Result<Resolved>> resolve(HostName name);

 private:
  struct Watch;
  struct Question;

  explicit Resolver(boost::asio::any_io_executor executor);
  static void on_socket(void* self, int fd, int readable, int writable);
  static void on_answer(void* question, int status, int timeouts, ares_addrinfo* found);
  void watch(int fd, bool readable, bool writable);
  void wait_for(std::shared_ptr<Watch> watched, bool writing);
  void arm_timer();

  boost::asio::any_io_executor executor_;
  ares_channeldata* channel_ = nullptr;
  std::map<int, std::shared_ptr<Watch>> watches_;  // shared with their waits
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> alive_;  // false once this is gone, for waits that end later
  size_t open_questions_ = 0;
};

}  // namespace atl::egress
