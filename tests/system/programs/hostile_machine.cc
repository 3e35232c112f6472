// Linked before the microvm library: /init as it is, but that it does the deeds of hostile_deeds.h.
#include "hostile_deeds.h"

// The agent comes first in what it waits for, then the port.
#define poll(polls, count, patience) \
  ::atl::hostile::poll_for_deeds(polls, count, 1, "/layer/upper/tmp/deed")
#include "microvm/guest.cc"
