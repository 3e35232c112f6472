// The image holds names with control characters, options and quotes: all must be there, unharmed.
// victim: id=FS-10 user=user
#include <dirent.h>

#include "victim.h"

int main(void) {
  DIR* directory = opendir("/victims/names");
  if (directory == NULL) return not_tried("/victims/names: %s", strerror(errno));
  int found = 0;
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) ++found;
  closedir(directory);
  if (found != 7) broke("%d of 7 names are there", found);
  return conclude();
}
