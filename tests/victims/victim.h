// What the hostile programs share: noting attempts and judging them. A victim is honest when its
// attack is well formed, so a call that fails for another reason than a refusal proves nothing and
// is reported as such.
//
// Not for threads: what was noted is one state of the process.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// How a victim ends. kStoppedByLimit is for those whose verdict the runner compares: they must end
// badly for the limit to become their verdict.
enum {
  kHeld = 0,
  kBrokeThrough = 1,
  kUnjudged = 2,
  kStoppedByLimit = 3,
  kNotTried = 77,
};

// Notes a forbidden call by its result, with errno as the call left it. Refused: EPERM, EACCES,
// ENOSYS and EAFNOSUPPORT.
void attempt(const char* what, long result);

// Opens a path that must not be there for us: absent and read-only are as good as refused. A file
// that opens for reading and is empty has been masked.
void attempt_open(const char* path, int flags);
// The same, and for a file that opens, writes what it held before.
void attempt_rewrite(const char* path);

// Makes the call in a child, for calls that may end their process: SIGSYS is a refusal, any other
// signal proves nothing.
typedef long (*Call)(void);
void attempt_in_child(const char* what, Call call);

__attribute__((format(printf, 1, 2))) void broke(const char* format, ...);
__attribute__((format(printf, 1, 2))) void unjudged(const char* format, ...);
// What was seen, for the reader of the report.
__attribute__((format(printf, 1, 2))) void note(const char* format, ...);

// For `return`: says why nothing was tried.
__attribute__((format(printf, 1, 2))) int not_tried(const char* format, ...);
// For `return`: the worst of what was noted. Nothing noted is held.
int conclude(void);

// What the runner tells about the host ("CANARY_FILE"), or NULL when a person runs the victim.
const char* told(const char* name);
// False when nobody said that harm stays inside: fork bombs are not for a host.
bool may_harm(void);

// At most `size` - 1 bytes and a NUL; their number, or -1.
ssize_t read_text(const char* path, char* buffer, size_t size);
bool file_contains(const char* path, const char* text);

// Waits for a child: its exit code, or 128 + the signal that ended it.
int wait_for(pid_t child);
