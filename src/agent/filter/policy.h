// Which system calls a program in a sandbox may make. This table is the whole policy: compile.h
// turns it into the filter at build time, exec_filter.h hands that out.
//
//   another architecture, x32       the process is killed
//   numbers above kNewestCall       ENOSYS, so that a C library falls back to an older call
//   kNotThere                       ENOSYS, for the same reason
//   kAllowed                        allowed
//   kChecked                        depends on the arguments
//   every other number              EPERM
// What runs a machine has another one with more calls, and gVisor's sentry a third one, which
// refuses where this kills: its own filter comes to hear of the calls of its programs only if ours
// does not kill them first.
//
// An allowed call can make the kernel keep objects that the memory limit does not count:
// docs/internals/kernel-memory.md says of each kind what holds it.
#pragma once

#include <errno.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>
#include <netinet/in.h>
#include <span>

namespace atl::agent::filter {

// file_setattr of Linux 6.17. Whoever raises it decides on every number up to the new one.
inline constexpr int kNewestCall = 469;

constexpr uint32_t fail_with(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
inline constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
inline constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
inline constexpr uint32_t kRefuse = fail_with(EPERM);

// Newer than the system's headers.
inline constexpr int kSetMempolicyHomeNode = 450, kFchmodat2 = 452, kMapShadowStack = 453,
                     kFutexWake = 454, kFutexWait = 455, kFutexRequeue = 456, kMseal = 462,
                     kSetxattrat = 463, kGetxattrat = 464, kListxattrat = 465, kRemovexattrat = 466,
                     kFileGetattr = 468, kFileSetattr = 469;

// clone3 hides its flags in memory, where a filter cannot look, and glibc falls back to clone.
// io_uring performs operations without a system call. The file attribute calls are too new for
// any program to rely on, and setxattrat hides the size of the value in memory. Asynchronous I/O
// of files has one count for the whole host. What a memory policy of a mapping takes is charged to
// nobody and stays without any process; with none of its calls libnuma says that there is no NUMA.
inline constexpr int kNotThere[] = {
    SYS_clone3,        SYS_io_uring_setup, SYS_io_uring_enter,   SYS_io_uring_register,
    kFileGetattr,      kFileSetattr,       kSetxattrat,          SYS_io_setup,
    SYS_io_destroy,    SYS_io_getevents,   SYS_io_submit,        SYS_io_cancel,
    SYS_io_pgetevents, SYS_mbind,          SYS_set_mempolicy,    SYS_get_mempolicy,
    SYS_migrate_pages, SYS_move_pages,     kSetMempolicyHomeNode};

// In the columns of the formatter these lists are twice as long.
// clang-format off
inline constexpr int kFileCalls[] = {
    SYS_read, SYS_write, SYS_open, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_poll, SYS_lseek,
    SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev, SYS_access, SYS_select, SYS_dup, SYS_dup2,
    SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_truncate, SYS_ftruncate, SYS_getdents,
    SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_creat, SYS_link,
    SYS_unlink, SYS_symlink, SYS_readlink, SYS_chmod, SYS_fchmod, SYS_chown, SYS_fchown, SYS_lchown,
    SYS_umask, SYS_utime, SYS_statfs, SYS_fstatfs, SYS_chroot, SYS_sync, SYS_readahead,
    SYS_getdents64, SYS_fadvise64, SYS_utimes, SYS_openat, SYS_mkdirat, SYS_fchownat, SYS_futimesat,
    SYS_newfstatat, SYS_unlinkat, SYS_renameat, SYS_linkat, SYS_symlinkat, SYS_readlinkat,
    SYS_fchmodat, SYS_faccessat, SYS_pselect6, SYS_ppoll, SYS_utimensat, SYS_fallocate, SYS_dup3,
    SYS_preadv, SYS_pwritev, SYS_syncfs, SYS_renameat2, SYS_preadv2, SYS_pwritev2, SYS_statx,
    SYS_close_range, SYS_openat2, SYS_faccessat2, kFchmodat2, SYS_sync_file_range};

inline constexpr int kAttributeCalls[] = {
    SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, kGetxattrat, kListxattrat, kRemovexattrat};

// Pipes, copies between descriptors, and what one waits for.
inline constexpr int kEventCalls[] = {
    SYS_pipe, SYS_pipe2, SYS_sendfile, SYS_splice, SYS_tee, SYS_copy_file_range, SYS_epoll_create,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2,
    SYS_eventfd, SYS_eventfd2, SYS_signalfd, SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_timerfd_gettime, SYS_inotify_init, SYS_inotify_init1, SYS_inotify_add_watch,
    SYS_inotify_rm_watch};

inline constexpr int kMemoryCalls[] = {
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_msync, SYS_mincore, SYS_madvise,
    SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_remap_file_pages,
    SYS_memfd_create, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free, SYS_membarrier,
    kMapShadowStack, kMseal};

inline constexpr int kProcessCalls[] = {
    SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid,
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgrp, SYS_setpgid, SYS_getpgid, SYS_setsid,
    SYS_getsid, SYS_arch_prctl, SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list,
    SYS_rseq, SYS_futex, SYS_futex_waitv, kFutexWake, kFutexWait, kFutexRequeue, SYS_getcpu,
    SYS_sched_yield, SYS_sched_setparam, SYS_sched_getparam, SYS_sched_setscheduler,
    SYS_sched_getscheduler, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_sched_rr_get_interval, SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_sched_setattr,
    SYS_sched_getattr, SYS_getpriority, SYS_setpriority, SYS_ioprio_get, SYS_ioprio_set,
    SYS_getrlimit, SYS_setrlimit, SYS_prlimit64, SYS_getrusage, SYS_times, SYS_pidfd_open,
    SYS_pidfd_send_signal, SYS_restart_syscall};

inline constexpr int kSignalCalls[] = {
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait,
    SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend, SYS_sigaltstack, SYS_kill,
    SYS_tkill, SYS_tgkill, SYS_pause};

// What they may change is decided by the capabilities.
inline constexpr int kIdentityCalls[] = {
    SYS_getuid, SYS_getgid, SYS_geteuid, SYS_getegid, SYS_setuid, SYS_setgid, SYS_getgroups,
    SYS_setgroups, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_getresuid, SYS_setresgid,
    SYS_getresgid, SYS_setfsuid, SYS_setfsgid, SYS_capget, SYS_capset};

// And what the system is.
inline constexpr int kTimeCalls[] = {
    SYS_nanosleep, SYS_getitimer, SYS_setitimer, SYS_alarm, SYS_time, SYS_gettimeofday,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_timer_create, SYS_timer_settime,
    SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete, SYS_uname, SYS_sysinfo,
    SYS_getrandom};

// Which kinds of socket there are is decided by socket, and what may be set by setsockopt; see
// checks.h.
inline constexpr int kSocketCalls[] = {
    SYS_connect, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
    SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_bind, SYS_listen, SYS_getsockname,
    SYS_getpeername, SYS_getsockopt};

// System V and POSIX: in a namespace of the sandbox.
inline constexpr int kMessageCalls[] = {
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_semget, SYS_semop, SYS_semctl, SYS_semtimedop,
    SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend,
    SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr};

// A program may confine itself further; it can take nothing back. Filters of its own: see checks.h.
inline constexpr int kConfinementCalls[] = {
    SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self};
// clang-format on

// Beside these, for gVisor's sentry, which runs the programs of a sandbox as its own children under
// ptrace or filters. Only what its jail holds can be traced.
inline constexpr int kSentryCalls[] = {SYS_ptrace};

// Beside these, for what runs the kernel of a sandbox: the sentry and QEMU confine themselves by
// filters of their own.
inline constexpr int kMonitorCalls[] = {SYS_seccomp};

inline constexpr std::span<const int> kAllowed[] = {
    kFileCalls,     kAttributeCalls, kEventCalls,  kMemoryCalls,  kProcessCalls,    kSignalCalls,
    kIdentityCalls, kTimeCalls,      kSocketCalls, kMessageCalls, kConfinementCalls};

}  // namespace atl::agent::filter
