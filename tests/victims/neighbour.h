// What the neighbour holds, by the names under which the LAT victims look for it.
#pragma once

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { kNeighbourKey = 0x41746f6c };
static const char* const kNeighbourQueue = "/atoll-neighbour";
static const char* const kNeighbourFile = "/dev/shm/atoll-neighbour";
static const char* const kNeighbourTemporary = "/tmp/atoll-neighbour";
static const char* const kNamespaces[] = {
    "/proc/self/ns/user", "/proc/self/ns/mnt",    "/proc/self/ns/pid",  "/proc/self/ns/net",
    "/proc/self/ns/ipc",  "/proc/self/ns/cgroup", "/proc/self/ns/time", NULL};

static inline struct sockaddr_un neighbour_address(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path + 1, "atoll-neighbour");
  return address;
}
