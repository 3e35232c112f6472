// Looks for the name of the host: in the kernel's answer and in the files it shares.
// victim: id=LAT-10
#include <sys/utsname.h>

#include "victim.h"

int main(void) {
  const char* name = told("HOST_NAME");
  if (name == NULL) return not_tried("nobody told the host's name");
  struct utsname names;
  uname(&names);
  if (strcmp(names.nodename, name) == 0) broke("uname gives the host's name");
  if (file_contains("/proc/sys/kernel/hostname", name)) broke("/proc gives the host's name");
  return conclude();
}
