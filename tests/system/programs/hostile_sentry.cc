// Linked before the gvisor library: process 1 inside of gVisor as it is, but that the one that
// passes its stream on does the deeds of hostile_deeds.h, and it ends itself when it is told to.
#include <pthread.h>
#include <signal.h>

#include "hostile_deeds.h"

#define poll(polls, count, patience) ::atl::hostile::poll_for_deeds(polls, count, 0, "/tmp/deed")
#define become_agent become_plain_agent
#include "gvisor/guest.cc"
#undef become_agent

namespace atl::gvisor {

Result<void> become_agent();

namespace {

void* watch(void*) {
  while (hostile::wanted_deed("/tmp/deed") != "end-process-1") usleep(50'000);
  _exit(7);
}

}  // namespace

Result<void> become_agent() {
  ATOLL_TRY_VOID(become_plain_agent());
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t watcher;
  if (pthread_create(&watcher, nullptr, watch, nullptr) != 0) return Error::system("watch");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

}  // namespace atl::gvisor
