// Sandboxes: those of one selftest. A neighbour that lives as long as the test and whose beat shows
// that others are well, and a victim's sandbox, made anew when it was used up. Removal may come
// from the thread that handles an interrupt; everything else is for one thread.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/api.h"
#include "cli/selftest/victim_list.h"

namespace atl::cli::selftest {

class Sandboxes {
 public:
  // `environment` is what the victims are told, `isolation` the wall of all of them.
  Sandboxes(Server server, boost::json::object environment, std::string isolation)
      : server_(std::move(server)),
        api_(server_),
        environment_(std::move(environment)),
        isolation_(std::move(isolation)) {}
  ~Sandboxes() { (void)remove_all(); }
  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;

  // Makes the neighbour and waits until it holds what the victims look for.
  Result<void> start_neighbour();
  // What the neighbour answers: the same every time, as long as nobody harmed it.
  Result<std::string> beat();

  // The exec's answer, when it has ended. A sandbox of the victim's own lives until forget_fresh(),
  // so that the host can be looked at while it is there.
  Result<boost::json::object> run(const Victim& victim, const std::string& user);
  Result<void> forget_fresh();

  // Also from another thread; the first failure, after having tried all.
  Result<void> remove_all();

 private:
  boost::json::object new_sandbox() const;
  Result<std::string> create(boost::json::object request);
  Result<void> remove(const std::string& id);
  Result<std::string> sandbox_for(const Victim& victim);
  Result<void> check_shared();

  Server server_;
  Api api_;
  boost::json::object environment_;
  std::string isolation_;
  std::string neighbour_;
  std::string shared_;
  std::string fresh_;
  std::mutex mutex_;
  std::set<std::string> alive_;  // under mutex_
  bool closed_ = false;          // under mutex_: no more are made
};

}  // namespace atl::cli::selftest
