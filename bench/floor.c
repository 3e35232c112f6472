// The floor: what the kernel alone costs. Builds the walls of a jail (eight namespaces, groups with
// limits wherever the host has its controllers, an overlay over the image, pivot_root, no
// capabilities, no_new_privs), runs a command in them and removes everything, with no service
// around it and no code of Atoll in it. Nothing can start a cold sandbox faster on the same
// machine.
//
//   atoll-floor latency <runs> <warm-ups> <image root> <work directory> <command...>
//   atoll-floor rate <seconds> <workers> <image root> <work directory> <command...>
//
// Prints one JSON object. Must run as root in a private mount namespace.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <net/if.h>

#define MAX_GROUPS 4
#define PATH_BYTES 512
#define FIRST_UID 100000
#define USER_INSIDE 1000

// One hierarchy that the host has, and the directory in it below which each run makes its own.
struct hierarchy {
  const char* controller;  // NULL: the v2 tree
  char base[PATH_BYTES];
};

struct worker {
  const char* image;
  char directory[PATH_BYTES];
  char** command;
  int user_namespace;  // maps ids for the view on the image; the same range as each run's own
  unsigned long run;
};

struct timing {
  double first_ms, gone_ms;
};

static struct hierarchy hierarchies[MAX_GROUPS];
static int hierarchy_count;
static int is_pure_v2;
static pid_t main_process;

static void remove_hierarchies(void) {
  for (int i = 0; i < hierarchy_count; ++i) rmdir(hierarchies[i].base);
}

static void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char* format, ...) {
  int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "atoll-floor: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "%s%s\n", saved ? ": " : "", saved ? strerror(saved) : "");
  va_end(arguments);
  if (getpid() == main_process) remove_hierarchies();
  _exit(1);
}

static void path_of(char out[PATH_BYTES], const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void path_of(char out[PATH_BYTES], const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(out, PATH_BYTES, format, arguments);
  va_end(arguments);
  if (length >= 0 && length < PATH_BYTES) return;
  errno = ENAMETOOLONG;
  fail("path %s", format);
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void write_text(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail("open %s", path);
  if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail("write %s to %s", text, path);
  close(fd);
}

static void make_directory(const char* path) {
  if (mkdir(path, 0755) != 0) fail("mkdir %s", path);
}

// ---- groups
// ----------------------------------------------------------------------------------------

// The groups are named after the work directory, so that whoever made it can find them.
static void find_hierarchies(const char* work) {
  const char* slash = strrchr(work, '/');
  const char* name = slash ? slash + 1 : work;
  is_pure_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
  const char* v2 = is_pure_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
  path_of(hierarchies[0].base, "%s/%s", v2, name);
  hierarchy_count = 1;
  const char* controllers[] = {"memory", "cpu", "pids"};
  for (size_t i = 0; i < 3 && !is_pure_v2; ++i) {
    struct hierarchy* next = &hierarchies[hierarchy_count++];
    next->controller = controllers[i];
    path_of(next->base, "/sys/fs/cgroup/%s/%s", controllers[i], name);
  }
  for (int i = 0; i < hierarchy_count; ++i) make_directory(hierarchies[i].base);
  if (!is_pure_v2) return;
  char path[PATH_BYTES];
  path_of(path, "%s/cgroup.subtree_control", hierarchies[0].base);
  write_text(path, "+memory +cpu +pids");
}

static void limit(const char* group, const char* file, const char* value) {
  char path[PATH_BYTES];
  path_of(path, "%s/%s", group, file);
  write_text(path, value);
}

static void make_group(const struct hierarchy* hierarchy, const char* group) {
  make_directory(group);
  const char* controller = hierarchy->controller;
  if (!controller && is_pure_v2) {
    limit(group, "memory.max", "536870912");
    limit(group, "cpu.max", "100000 100000");
    limit(group, "pids.max", "256");
  } else if (controller && strcmp(controller, "memory") == 0) {
    limit(group, "memory.limit_in_bytes", "536870912");
  } else if (controller && strcmp(controller, "cpu") == 0) {
    limit(group, "cpu.cfs_quota_us", "100000");
  } else if (controller) {
    limit(group, "pids.max", "256");
  }
}

static void group_of(char out[PATH_BYTES], int index, const struct worker* worker) {
  path_of(out, "%s/%d-%lu", hierarchies[index].base, getpid(), worker->run);
}

static void remove_group(const char* group) {
  // The last task leaves its group a moment after it was reaped.
  for (int attempt = 0; rmdir(group) != 0; ++attempt) {
    if (errno != EBUSY || attempt == 1000) fail("rmdir %s", group);
    usleep(100);
  }
}

// ---- inside
// ----------------------------------------------------------------------------------------

static void mount_or_fail(const char* source, const char* target, const char* type,
                          unsigned long flags, const char* data) {
  if (mount(source, target, type, flags, data) != 0) fail("mount %s on %s", type, target);
}

static void build_devices(const char* root) {
  char target[PATH_BYTES], source[PATH_BYTES];
  path_of(target, "%s/dev", root);
  mount_or_fail("dev", target, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755");
  const char* names[] = {"null", "zero", "full", "random", "urandom"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    path_of(source, "/dev/%s", names[i]);
    path_of(target, "%s/dev/%s", root, names[i]);
    int fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) fail("create %s", target);
    close(fd);
    mount_or_fail(source, target, "bind", MS_BIND, NULL);
  }
}

static void build_root(const struct worker* worker, int image) {
  char root[PATH_BYTES], lower[PATH_BYTES], target[PATH_BYTES], options[4 * PATH_BYTES];
  path_of(root, "%s/root", worker->directory);
  path_of(lower, "%s/lower", worker->directory);
  mount_or_fail(NULL, "/", "private", MS_REC | MS_PRIVATE, NULL);
  if (syscall(SYS_move_mount, image, "", AT_FDCWD, lower, MOVE_MOUNT_F_EMPTY_PATH) != 0)
    fail("move_mount %s", lower);
  snprintf(options, sizeof options,
           "lowerdir=%s,upperdir=%s/layer-%lu/upper,workdir=%s/layer-%lu/work,userxattr", lower,
           worker->directory, worker->run, worker->directory, worker->run);
  mount_or_fail("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options);
  build_devices(root);
  path_of(target, "%s/proc", root);
  mount_or_fail("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  path_of(target, "%s/run", root);
  mount_or_fail("run", target, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=755");
  if (chdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) fail("pivot_root %s", root);
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) fail("umount the old root");
}

static void raise_loopback(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo"};
  request.ifr_flags = IFF_UP;
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) fail("raise lo");
  close(fd);
}

static void drop_privileges(void) {
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;) ++capability;
  if (setgroups(0, NULL) != 0 || setresgid(USER_INSIDE, USER_INSIDE, USER_INSIDE) != 0 ||
      setresuid(USER_INSIDE, USER_INSIDE, USER_INSIDE) != 0)
    fail("become the user");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  if (syscall(SYS_capset, &header, none) != 0) fail("capset");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
}

static void run_inside(const struct worker* worker, int image, int ready, int output) {
  char byte;
  if (read(ready, &byte, 1) != 1) _exit(1);  // the parent failed and has said why
  if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) fail("become root inside");
  build_root(worker, image);
  if (sethostname("floor", 5) != 0) fail("sethostname");
  raise_loopback();
  drop_privileges();
  setsid();
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) fail("dup2");
  char* environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8",
                         NULL};
  execvpe(worker->command[0], worker->command, environment);
  fail("exec %s", worker->command[0]);
}

// ---- one run
// ---------------------------------------------------------------------------------------

static void map_ids(pid_t pid) {
  char path[PATH_BYTES], map[64];
  snprintf(map, sizeof map, "0 %d 65536", FIRST_UID);
  path_of(path, "/proc/%d/uid_map", pid);
  write_text(path, map);
  path_of(path, "/proc/%d/gid_map", pid);
  write_text(path, map);
}

static int view_of_image(const struct worker* worker) {
  int image =
      (int)syscall(SYS_open_tree, AT_FDCWD, worker->image, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (image < 0) fail("open_tree %s", worker->image);
  struct mount_attr attributes = {
      .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID,
      .userns_fd = (unsigned)worker->user_namespace};
  if (syscall(SYS_mount_setattr, image, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    fail("idmap %s", worker->image);
  return image;
}

static void make_layer(const struct worker* worker) {
  char path[PATH_BYTES];
  path_of(path, "%s/layer-%lu", worker->directory, worker->run);
  make_directory(path);
  const char* names[] = {"upper", "work"};
  for (int i = 0; i < 2; ++i) {
    path_of(path, "%s/layer-%lu/%s", worker->directory, worker->run, names[i]);
    make_directory(path);
    if (chown(path, FIRST_UID, FIRST_UID) != 0) fail("chown %s", path);
  }
}

static int remove_entry(const char* path, const struct stat* status, int kind, struct FTW* where) {
  (void)status, (void)kind, (void)where;
  return remove(path);
}

static void remove_layer(const struct worker* worker) {
  char path[PATH_BYTES];
  path_of(path, "%s/layer-%lu", worker->directory, worker->run);
  if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) fail("remove %s", path);
}

// Starts the command behind its walls; `output` gets the reading end of its standard output.
static pid_t start(const struct worker* worker, int* output) {
  char group[PATH_BYTES];
  for (int i = 0; i < hierarchy_count; ++i) {
    group_of(group, i, worker);
    make_group(&hierarchies[i], group);
  }
  group_of(group, 0, worker);
  int v2 = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (v2 < 0) fail("open %s", group);
  make_layer(worker);
  int image = view_of_image(worker);
  int ready[2], pipe_ends[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(pipe_ends, O_CLOEXEC) != 0) fail("pipe");

  struct clone_args arguments = {
      .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
               CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME | CLONE_INTO_CGROUP,
      .exit_signal = SIGCHLD,
      .cgroup = (unsigned long long)v2,
  };
  pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) fail("clone3");
  if (pid == 0) {
    close(ready[1]);
    run_inside(worker, image, ready[0], pipe_ends[1]);
  }
  close(ready[0]);
  close(pipe_ends[1]);
  close(image);
  close(v2);
  map_ids(pid);
  char text[16], procs[PATH_BYTES + 16];
  snprintf(text, sizeof text, "%d", pid);
  for (int i = 1; i < hierarchy_count; ++i) {
    group_of(group, i, worker);
    snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
    write_text(procs, text);
  }
  if (write(ready[1], "x", 1) != 1) fail("release the child");
  close(ready[1]);
  *output = pipe_ends[0];
  return pid;
}

static struct timing run_once(struct worker* worker) {
  double begin = now_ms();
  int output = -1;
  pid_t pid = start(worker, &output);
  char buffer[4096];
  struct timing timing = {0, 0};
  ssize_t count;
  do {
    count = read(output, buffer, sizeof buffer);
    if (timing.first_ms == 0) timing.first_ms = now_ms() - begin;
  } while (count > 0 || (count < 0 && errno == EINTR));
  close(output);
  int status;
  if (waitpid(pid, &status, 0) != pid) fail("wait");
  char group[PATH_BYTES];
  for (int i = 0; i < hierarchy_count; ++i) {
    group_of(group, i, worker);
    remove_group(group);
  }
  remove_layer(worker);
  timing.gone_ms = now_ms() - begin;
  errno = 0;
  if (status != 0) fail("%s ended with status %#x", worker->command[0], status);
  worker->run++;
  return timing;
}

// ---- the two measurements
// --------------------------------------------------------------------------

static int open_user_namespace(void) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) fail("pipe");
  pid_t holder = fork();
  if (holder < 0) fail("fork");
  if (holder == 0) {
    if (unshare(CLONE_NEWUSER) != 0 || write(ready[1], "x", 1) != 1)
      fail("unshare a user namespace");
    pause();
    _exit(0);
  }
  close(ready[1]);
  char byte, path[PATH_BYTES];
  if (read(ready[0], &byte, 1) != 1) fail("make a user namespace");
  close(ready[0]);
  map_ids(holder);
  path_of(path, "/proc/%d/ns/user", holder);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open %s", path);
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  return fd;
}

static struct worker make_worker(char** arguments, int index) {
  struct worker worker = {.image = arguments[0], .command = arguments + 2};
  path_of(worker.directory, "%s/worker-%d", arguments[1], index);
  make_directory(worker.directory);
  char path[PATH_BYTES];
  path_of(path, "%s/lower", worker.directory);
  make_directory(path);
  path_of(path, "%s/root", worker.directory);
  make_directory(path);
  worker.user_namespace = open_user_namespace();
  return worker;
}

static void remove_worker(struct worker* worker) {
  close(worker->user_namespace);
  if (nftw(worker->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
    fail("remove %s", worker->directory);
}

static void measure_latency(int runs, int warm_ups, char** arguments) {
  struct worker worker = make_worker(arguments, 0);
  for (int i = 0; i < warm_ups; ++i) run_once(&worker);
  struct timing* timings = calloc((size_t)runs, sizeof *timings);
  if (!timings) fail("calloc");
  for (int i = 0; i < runs; ++i) timings[i] = run_once(&worker);
  printf("{\"first_ms\":[");
  for (int i = 0; i < runs; ++i) printf("%s%.3f", i ? "," : "", timings[i].first_ms);
  printf("],\"done_ms\":[");
  for (int i = 0; i < runs; ++i) printf("%s%.3f", i ? "," : "", timings[i].gone_ms);
  printf("]}\n");
  free(timings);
  remove_worker(&worker);
}

static void measure_rate(int seconds, int workers, char** arguments) {
  unsigned long* counts = mmap(NULL, sizeof *counts * (size_t)workers, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (counts == MAP_FAILED) fail("mmap");
  double begin = now_ms();
  for (int i = 0; i < workers; ++i) {
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid > 0) continue;
    struct worker worker = make_worker(arguments, i);
    while (now_ms() - begin < seconds * 1e3) run_once(&worker);
    counts[i] = worker.run;
    remove_worker(&worker);
    _exit(0);
  }
  unsigned long total = 0;
  int failed = 0;
  for (int i = 0, status; i < workers; ++i) {
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  double elapsed = now_ms() - begin;
  for (int i = 0; i < workers; ++i) total += counts[i];
  errno = 0;
  if (failed) fail("a worker failed");
  printf("{\"per_second\":%.1f}\n", (double)total * 1e3 / elapsed);
}

int main(int count, char** arguments) {
  if (count < 7) {
    fprintf(stderr,
            "usage: atoll-floor latency <runs> <warm-ups> <image root> <work dir> <command...>\n"
            "       atoll-floor rate <seconds> <workers> <image root> <work dir> <command...>\n");
    return 2;
  }
  int first = atoi(arguments[2]), second = atoi(arguments[3]);
  errno = EINVAL;
  if (first < 1 || second < 0) fail("the two numbers");
  umask(022);
  main_process = getpid();
  find_hierarchies(arguments[5]);
  if (strcmp(arguments[1], "latency") == 0) {
    measure_latency(first, second, arguments + 4);
  } else {
    measure_rate(first, second, arguments + 4);
  }
  remove_hierarchies();
  return 0;
}
