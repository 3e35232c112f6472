#include "victim.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

static int worst = kHeld;

// The runner looks for the marks, to show the line that matters.
static void print(const char* mark, const char* format, va_list values) {
  printf("%s", mark);
  vprintf(format, values);
  printf("\n");
  fflush(stdout);
}

static bool is_refusal(int number) {
  return number == EPERM || number == EACCES || number == ENOSYS || number == EAFNOSUPPORT;
}

void broke(const char* format, ...) {
  va_list values;
  va_start(values, format);
  print("BROKE: ", format, values);
  va_end(values);
  worst = kBrokeThrough;
}

void unjudged(const char* format, ...) {
  va_list values;
  va_start(values, format);
  print("UNJUDGED: ", format, values);
  va_end(values);
  if (worst == kHeld) worst = kUnjudged;
}

void note(const char* format, ...) {
  va_list values;
  va_start(values, format);
  print("", format, values);
  va_end(values);
}

int not_tried(const char* format, ...) {
  va_list values;
  va_start(values, format);
  print("", format, values);
  va_end(values);
  return kNotTried;
}

int conclude(void) { return worst; }

static void judge(const char* what, long result, int number) {
  if (result >= 0)
    broke("%s succeeded (%ld)", what, result);
  else if (is_refusal(number))
    note("%s: %s", what, strerror(number));
  else
    unjudged("%s: %s is no refusal", what, strerror(number));
}

void attempt(const char* what, long result) { judge(what, result, errno); }

static bool is_absent(int number) {
  return number == ENOENT || number == ENOTDIR || number == EROFS || number == ENXIO ||
         number == ENODEV;
}

void attempt_open(const char* path, int flags) {
  int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && (is_absent(errno) || is_refusal(errno))) {
    note("%s: %s", path, strerror(errno));
    return;
  }
  if (fd < 0) {
    unjudged("%s: %s is no refusal", path, strerror(errno));
    return;
  }
  char first[64];
  ssize_t got = (flags & O_ACCMODE) == O_RDONLY ? read(fd, first, sizeof first) : 1;
  if (got > 0)
    broke("%s opened%s", path, (flags & O_ACCMODE) == O_RDONLY ? " and had content" : "");
  else
    note("%s: %s", path, got == 0 ? "empty" : strerror(errno));
  close(fd);
}

void attempt_rewrite(const char* path) {
  char before[4096];
  ssize_t length = read_text(path, before, sizeof before);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    attempt_open(path, O_WRONLY);
    return;
  }
  ssize_t written = write(fd, before, length > 0 ? (size_t)length : 0);
  broke("%s opened for writing, %s", path, written >= 0 ? "and took it" : strerror(errno));
  close(fd);
}

void attempt_in_child(const char* what, Call call) {
  struct {
    long result;
    int number;
  } answer;
  int ends[2];
  if (pipe(ends) != 0) {
    unjudged("%s: pipe: %s", what, strerror(errno));
    return;
  }
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    answer.result = call();
    answer.number = errno;
    _exit(write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  close(ends[1]);
  int status = child < 0 ? -1 : wait_for(child);
  ssize_t got = read(ends[0], &answer, sizeof answer);
  close(ends[0]);
  if (got == sizeof answer)
    judge(what, answer.result, answer.number);
  else if (status == 128 + SIGSYS)
    note("%s: killed by SIGSYS", what);
  else
    unjudged("%s: the child ended with %d", what, status);
}

const char* told(const char* name) {
  char variable[64];
  snprintf(variable, sizeof variable, "ATOLL_%s", name);
  const char* value = getenv(variable);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

bool may_harm(void) { return told("VICTIM_MAY_HARM") != NULL; }

ssize_t read_text(const char* path, char* buffer, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  size_t length = 0;
  while (length < size - 1) {
    ssize_t got = read(fd, buffer + length, size - 1 - length);
    if (got < 0 && length == 0) length = (size_t)-1;
    if (got <= 0) break;
    length += (size_t)got;
  }
  int number = errno;
  close(fd);
  errno = number;
  if (length == (size_t)-1) return -1;
  buffer[length] = '\0';
  return (ssize_t)length;
}

bool file_contains(const char* path, const char* text) {
  static char content[256 * 1024];
  ssize_t length = read_text(path, content, sizeof content);
  return length > 0 && memmem(content, (size_t)length, text, strlen(text)) != NULL;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
