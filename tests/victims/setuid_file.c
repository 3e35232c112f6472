// Executes a copy of itself that belongs to root and has the setuid and setgid bits.
// victim: id=ESC-16 user=user
#include "victim.h"

int main(int count, char** values) {
  if (count > 1) {
    bool same = geteuid() == (uid_t)atoi(values[1]) && getegid() == getgid();
    return same ? kHeld : kBrokeThrough;
  }
  const char* path = "/victims/set-user-id";
  if (access(path, X_OK) != 0) return not_tried("%s: %s", path, strerror(errno));
  char uid[16];
  snprintf(uid, sizeof uid, "%u", getuid());
  pid_t child = fork();
  if (child == 0) {
    execl(path, path, "setuid_file", uid, NULL);
    _exit(kHeld);  // not to be executed at all is as good
  }
  if (wait_for(child) != kHeld) broke("the setuid file ran with other ids than its caller's");
  return conclude();
}
