// Times a command from its start to the first byte of its output and to its end, many times over.
// A program of its own because a scripting language would add its own milliseconds to each start.
//
//   atoll-stopwatch <runs> <warm-ups> <expected output> <command...>
//
// %RUN% in an argument becomes the number of the run. Prints one JSON object; if a run fails, its
// standard error follows ours and the exit code is 1.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARGUMENTS 64
#define ARGUMENT_BYTES 4096
#define OUTPUT_BYTES 4096

struct timing {
  double first_ms, done_ms;
};

static void fail(const char* what) {
  fprintf(stderr, "atoll-stopwatch: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static char* numbered(const char* argument, int run) {
  static const char kMark[] = "%RUN%";
  const char* mark = strstr(argument, kMark);
  char* copy = malloc(ARGUMENT_BYTES);
  if (!copy) fail("malloc");
  int length = mark ? snprintf(copy, ARGUMENT_BYTES, "%.*s%d%s", (int)(mark - argument), argument,
                               run, mark + strlen(kMark))
                    : snprintf(copy, ARGUMENT_BYTES, "%s", argument);
  errno = E2BIG;
  if (length < 0 || length >= ARGUMENT_BYTES) fail(argument);
  return copy;
}

static void show_failure(int errors, int status, const char* output) {
  fprintf(stderr, "ended with status %#x after the output \"%s\"\n", status, output);
  char buffer[4096];
  lseek(errors, 0, SEEK_SET);
  for (ssize_t count; (count = read(errors, buffer, sizeof buffer)) > 0;)
    fwrite(buffer, 1, (size_t)count, stderr);
  exit(1);
}

// Reads to the end of `fd`; the time of the first byte, or of the end if there was none.
static double read_output(int fd, char output[OUTPUT_BYTES + 1]) {
  double first = 0;
  size_t used = 0;
  for (;;) {
    char rest[512];
    ssize_t count = used < OUTPUT_BYTES ? read(fd, output + used, OUTPUT_BYTES - used)
                                        : read(fd, rest, sizeof rest);
    if (first == 0) first = now_ms();
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (used < OUTPUT_BYTES) used += (size_t)count;
  }
  output[used] = '\0';
  return first;
}

static struct timing run_once(char** command, int errors, const char* expected) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  if (ftruncate(errors, 0) != 0 || lseek(errors, 0, SEEK_SET) != 0) fail("rewind");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  double begin = now_ms();
  pid_t pid;
  errno = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
  if (errno != 0) fail(command[0]);
  close(ends[1]);
  char output[OUTPUT_BYTES + 1];
  struct timing timing = {.first_ms = read_output(ends[0], output) - begin};
  int status;
  if (waitpid(pid, &status, 0) != pid) fail("wait");
  timing.done_ms = now_ms() - begin;
  close(ends[0]);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0 || strcmp(output, expected) != 0) show_failure(errors, status, output);
  return timing;
}

static void print_list(const char* name, const double* values, int count) {
  printf("\"%s\":[", name);
  for (int i = 0; i < count; ++i) printf("%s%.3f", i ? "," : "", values[i]);
  printf("]");
}

int main(int count, char** arguments) {
  if (count < 5 || count - 4 >= MAX_ARGUMENTS) {
    fprintf(stderr, "usage: atoll-stopwatch <runs> <warm-ups> <expected output> <command...>\n");
    return 2;
  }
  int runs = atoi(arguments[1]), warm_ups = atoi(arguments[2]);
  errno = EINVAL;
  if (runs < 1 || warm_ups < 0) fail("numbers of runs");
  double* first = calloc((size_t)runs, sizeof *first);
  double* done = calloc((size_t)runs, sizeof *done);
  int errors = memfd_create("stderr", MFD_CLOEXEC);
  if (!first || !done || errors < 0) fail("prepare");
  for (int run = -warm_ups; run < runs; ++run) {
    char* command[MAX_ARGUMENTS] = {NULL};
    for (int i = 4; i < count; ++i) command[i - 4] = numbered(arguments[i], run + warm_ups);
    struct timing timing = run_once(command, errors, arguments[3]);
    for (int i = 0; command[i]; ++i) free(command[i]);
    if (run < 0) continue;
    first[run] = timing.first_ms;
    done[run] = timing.done_ms;
  }
  printf("{");
  print_list("first_ms", first, runs);
  printf(",");
  print_list("done_ms", done, runs);
  printf("}\n");
  return 0;
}
