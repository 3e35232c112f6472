// Links of the image that point above the root, at the host's shadow file and into /proc.
// victim: id=FS-10
#include <sys/stat.h>

#include "victim.h"

int main(void) {
  struct stat root, up;
  if (stat("/", &root) != 0 || stat("/victims/up", &up) != 0)
    return not_tried("/victims/up: %s", strerror(errno));
  if (root.st_ino != up.st_ino || root.st_dev != up.st_dev) broke("/victims/up is not the root");
  char text[4096];
  if (read_text("/victims/shadow", text, sizeof text) > 0 &&
      strcmp(text, "root:!:19000:0:99999:7:::\n") != 0)
    broke("/victims/shadow is another file than the image's");
  return conclude();
}
