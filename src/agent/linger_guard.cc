#include "agent/linger_guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

namespace atl::agent {
namespace {

constexpr timeval kInterval = {.tv_sec = 0, .tv_usec = 5000};

void send_alarms_every(timeval interval) {
  itimerval timer = {.it_interval = interval, .it_value = interval};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

LingerGuard::LingerGuard() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  send_alarms_every(kInterval);
}

LingerGuard::~LingerGuard() {
  int saved = errno;
  send_alarms_every({});
  errno = saved;
}

}  // namespace atl::agent
