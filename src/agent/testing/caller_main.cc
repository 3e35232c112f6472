// For tests of what a program in a sandbox may do: makes one system call and says what came back.
//   call NUMBER [ARGUMENT...]   "ok" or the errno; an argument is a number, or text
//   int80 | x32                 the same process by another architecture's way in
//   own-filter NUMBER           installs a filter that allows everything, then calls
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

namespace {

constexpr int kFirstArgument = 3;
constexpr long kX32 = 0x40000000;

long argument(int count, char** arguments, int index) {
  if (index >= count) return 0;
  char* end = nullptr;
  unsigned long number = strtoul(arguments[index], &end, 0);
  return *end == '\0' ? static_cast<long>(number) : reinterpret_cast<long>(arguments[index]);
}

void say(long result) { result < 0 ? printf("%d\n", errno) : printf("ok\n"); }

void allow_everything() {
  sock_filter program[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog description = {1, program};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &description) != 0) printf("no filter ");
}

}  // namespace

int main(int count, char** arguments) {
  std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "int80") {
    long result = 20;  // getpid of i386
    asm volatile("int $0x80" : "+a"(result) : : "memory");
    printf("came back\n");
    return 0;
  }
  if (what == "x32") {
    syscall(kX32 | SYS_getpid);
    printf("came back\n");
    return 0;
  }
  if (what == "own-filter") allow_everything();
  long values[6];
  for (int i = 0; i < 6; ++i) values[i] = argument(count, arguments, kFirstArgument + i);
  say(syscall(argument(count, arguments, 2), values[0], values[1], values[2], values[3], values[4],
              values[5]));
}
