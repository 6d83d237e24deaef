/* SPDX-License-Identifier: ISC */
/*
 * The calls that commands may not make.
 *
 * The kernel reads these arguments as 32 bits, so a compare looks at 32 bits
 * only. Higher bits must neither hide a bad value nor make a good one bad.
 */
#include "command_filter_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util.h"

/*
 * Calls without a name in the headers of Debian 12 or in libseccomp 2.5.4.
 * Since Linux 5.1 a new call has the same number on all architectures, also on
 * i386.
 */
#define NR_fchmodat2	  452
#define NR_statmount	  457
#define NR_listmount	  458
#define NR_setxattrat	  463
#define NR_removexattrat  466
#define NR_open_tree_attr 467
#define NR_file_setattr	  469

/* O_TMPFILE includes the bit of O_DIRECTORY, which alone creates nothing. */
#define TMPFILE_BIT ((uint32_t)O_TMPFILE & ~(uint32_t)O_DIRECTORY)

#define ALL_BITS  0xffffffff
#define TYPE_BITS 0xf

#define BRACES(...)                                                            \
	{                                                                      \
		__VA_ARGS__                                                    \
	}
#define COUNT(...) (sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define COMPARE(arg, bits, none, ...)                                          \
	BRACES(arg, bits, none, COUNT(__VA_ARGS__), BRACES(__VA_ARGS__))
#define IS(arg, value)		COMPARE(arg, ALL_BITS, false, value)
#define HAS(arg, bits)		COMPARE(arg, bits, false, bits)
#define NONE_OF(arg, bits, ...) COMPARE(arg, bits, true, __VA_ARGS__)

#define DENY(name)	      DENY_WHEN(name, ALWAYS)
#define DENY_WHEN(name, when) BRACES(SCMP_SYS(name), EPERM, when, false)
#define DENY_NEW(name)	      BRACES(NR_##name, EPERM, ALWAYS, true)
#define ABSENT(name, when)    BRACES(SCMP_SYS(name), ENOSYS, when, false)
#define DENY_IF(name, when, ...)                                               \
	BRACES(SCMP_SYS(name), EPERM, when, false, BRACES(__VA_ARGS__))
#define DENY_IOCTL(type, number)                                               \
	DENY_IF(                                                               \
	    ioctl, NO_VIEW, COMPARE(1, 0xffff, false, (type) << 8 | (number)))
#define UNSUPPORTED(name)     BRACES(SCMP_SYS(name), EOPNOTSUPP, NO_VIEW, false)
#define UNSUPPORTED_NEW(name) BRACES(NR_##name, EOPNOTSUPP, NO_VIEW, true)
#define DENY_NEW_IF(name, when, ...)                                           \
	BRACES(NR_##name, EPERM, when, true, BRACES(__VA_ARGS__))

/*
 * SETID: calls with a mode. SETID_CHANGE: calls that may change a directory.
 * SETID_FLAG: calls whose mode counts only with a flag.
 */
#define SETID(name, mode)                                                      \
	DENY_IF(name, NO_SETID, HAS(mode, S_ISUID)),                           \
	    DENY_IF(name, NO_SETID, HAS(mode, S_ISGID))
#define SETID_CHANGE(name, mode)                                               \
	DENY_IF(name, NO_SETID, HAS(mode, S_ISUID)),                           \
	    DENY_IF(name, NO_SETGID, HAS(mode, S_ISGID))
#define SETID_CHANGE_NEW(name, mode)                                           \
	DENY_NEW_IF(name, NO_SETID, HAS(mode, S_ISUID)),                       \
	    DENY_NEW_IF(name, NO_SETGID, HAS(mode, S_ISGID))
#define SETID_FLAG(name, flags, bit, mode)                                     \
	DENY_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISUID)),          \
	    DENY_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISGID))

/* DENY answers EPERM, ABSENT answers ENOSYS. */
const struct row command_filter_rows[] = {
	/*
	 * Memory and descriptors of other processes. A debugger needs the first
	 * three for its own children and reaches nobody else: the pid namespace
	 * of the command has no other processes, and its init cannot be traced.
	 */
	DENY_WHEN(ptrace, NO_PTRACE), DENY_WHEN(process_vm_readv, NO_PTRACE),
	DENY_WHEN(process_vm_writev, NO_PTRACE), DENY(kcmp), DENY(pidfd_getfd),
	DENY(process_madvise),
	/* the view */
	DENY(mount), DENY(umount2), DENY(pivot_root), DENY(chroot),
	DENY(move_mount), DENY(open_tree), DENY_NEW(open_tree_attr),
	DENY(fsopen), DENY(fsconfig), DENY(fsmount), DENY(fspick),
	DENY(mount_setattr), DENY_NEW(statmount), DENY_NEW(listmount),
	/* handles bypass the view */
	DENY(open_by_handle_at), DENY(name_to_handle_at),
	/* the kernel's attack surface */
	DENY(bpf), DENY(userfaultfd), DENY(perf_event_open), DENY(keyctl),
	DENY(add_key), DENY(request_key), DENY(io_uring_setup),
	DENY(io_uring_enter), DENY(io_uring_register), DENY(syslog),
	DENY(lookup_dcookie), DENY(fanotify_init),
	/* the machine */
	DENY(init_module), DENY(finit_module), DENY(delete_module),
	DENY(kexec_load), DENY(kexec_file_load), DENY(reboot), DENY(swapon),
	DENY(swapoff), DENY(acct), DENY(quotactl), DENY(quotactl_fd),
	DENY(iopl), DENY(ioperm), DENY(clock_settime), DENY(settimeofday),
	DENY(clock_adjtime), DENY(adjtimex), DENY(sethostname),
	DENY(setdomainname), DENY(vhangup),
	/* placement of memory; rare and old calls */
	DENY(move_pages), DENY(migrate_pages), DENY(mbind), DENY(set_mempolicy),
	DENY(modify_ldt), DENY(vmsplice), DENY(remap_file_pages), DENY(uselib),
	DENY(ustat), DENY(sysfs), DENY(nfsservctl),
	/* i386: arguments in memory, and older names of the calls above */
	DENY_WHEN(socketcall, WITH_32BIT), DENY_WHEN(ipc, WITH_32BIT),
	DENY_WHEN(umount, WITH_32BIT), DENY_WHEN(stime, WITH_32BIT),
	DENY_WHEN(clock_settime64, WITH_32BIT),
	DENY_WHEN(clock_adjtime64, WITH_32BIT),

	/*
	 * Namespaces. clone3 has its flags in memory; glibc, musl and Go fall
	 * back to clone on ENOSYS.
	 */
	DENY_WHEN(setns, NO_USERNS), DENY_WHEN(unshare, NO_USERNS),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWNS)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWUSER)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWPID)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWNET)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWIPC)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWUTS)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWCGROUP)),
	DENY_IF(clone, NO_USERNS, HAS(0, CLONE_NEWTIME)),
	ABSENT(clone3, NO_USERNS),

	/* Devices. mkfifo is needed. */
	DENY_IF(mknod, ALWAYS, NONE_OF(1, S_IFMT, 0, S_IFIFO, S_IFREG)),
	DENY_IF(mknodat, ALWAYS, NONE_OF(2, S_IFMT, 0, S_IFIFO, S_IFREG)),

	/* typing into a terminal, or taking it from its session */
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSTI)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCLINUX)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCCONS)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSETD)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSCTTY), IS(2, 1)),

	/* Set-id bits. openat2 has its mode in memory. */
	SETID_CHANGE(chmod, 1), SETID_CHANGE(fchmod, 1),
	SETID_CHANGE(fchmodat, 2), SETID_CHANGE_NEW(fchmodat2, 2),
	SETID(creat, 1), SETID(mknod, 1), SETID(mknodat, 2),
	SETID_FLAG(open, 1, O_CREAT, 2), SETID_FLAG(open, 1, TMPFILE_BIT, 2),
	SETID_FLAG(openat, 2, O_CREAT, 3),
	SETID_FLAG(openat, 2, TMPFILE_BIT, 3), ABSENT(openat2, NO_SETID),

	/*
	 * gdb and setarch -R switch off address randomization for the programs
	 * that they start.
	 */
	DENY_IF(personality, ALWAYS,
	    NONE_OF(0, ALL_BITS, 0, ADDR_NO_RANDOMIZE, 0xffffffff)),
	DENY_IF(prctl, ALWAYS, IS(0, PR_SET_MM)),
	/* The thread of LeakSanitizer traces its own process. */
	DENY_IF(prctl, NO_PTRACE, IS(0, PR_SET_PTRACER)),

	/*
	 * Without a view: attributes and owners of files that may only be read.
	 * Programs that copy attributes treat EOPNOTSUPP as a file system
	 * without them.
	 */
	UNSUPPORTED(setxattr), UNSUPPORTED(lsetxattr), UNSUPPORTED(fsetxattr),
	UNSUPPORTED(removexattr), UNSUPPORTED(lremovexattr),
	UNSUPPORTED(fremovexattr), UNSUPPORTED_NEW(setxattrat),
	UNSUPPORTED_NEW(removexattrat), UNSUPPORTED_NEW(file_setattr),
	DENY_WHEN(chown, NO_VIEW), DENY_WHEN(lchown, NO_VIEW),
	DENY_WHEN(fchown, NO_VIEW), DENY_WHEN(fchownat, NO_VIEW),
	DENY_WHEN(chown32, NO_VIEW), DENY_WHEN(lchown32, NO_VIEW),
	DENY_WHEN(fchown32, NO_VIEW),
	/*
	 * The same, and new names in directories, through a descriptor for
	 * reading: FS_IOC_SETFLAGS, encryption, verity, FSSETXATTR; attributes
	 * of FAT; links of OCFS2; subvolumes and snapshots of Btrfs.
	 */
	DENY_IOCTL('f', 2), DENY_IOCTL('f', 19), DENY_IOCTL('f', 133),
	DENY_IOCTL('X', 32), DENY_IOCTL('r', 17), DENY_IOCTL('o', 4),
	DENY_IOCTL(0x94, 1), DENY_IOCTL(0x94, 14), DENY_IOCTL(0x94, 15),
	DENY_IOCTL(0x94, 23), DENY_IOCTL(0x94, 24), DENY_IOCTL(0x94, 26),
	DENY_IOCTL(0x94, 37), DENY_IOCTL(0x94, 63),
	/* memory and messages that the user's other processes share */
	DENY_WHEN(shmget, NO_VIEW), DENY_WHEN(shmat, NO_VIEW),
	DENY_WHEN(shmctl, NO_VIEW), DENY_WHEN(semget, NO_VIEW),
	DENY_WHEN(semop, NO_VIEW), DENY_WHEN(semtimedop, NO_VIEW),
	DENY_WHEN(semctl, NO_VIEW), DENY_WHEN(semtimedop_time64, NO_VIEW),
	DENY_WHEN(msgget, NO_VIEW), DENY_WHEN(msgsnd, NO_VIEW),
	DENY_WHEN(msgrcv, NO_VIEW), DENY_WHEN(msgctl, NO_VIEW),
	DENY_WHEN(mq_open, NO_VIEW), DENY_WHEN(mq_unlink, NO_VIEW),
	/*
	 * Modes of files that may only be read, where the caller is the file
	 * helper.
	 */
	DENY_WHEN(chmod, NO_CHMOD), DENY_WHEN(fchmodat, NO_CHMOD),
	BRACES(NR_fchmodat2, EPERM, NO_CHMOD, true),
	/* limits of other processes */
	DENY_IF(prlimit64, NO_VIEW, NONE_OF(0, ALL_BITS, 0)),

	/* network restricted */
	DENY_WHEN(socket, NO_SOCKETS), DENY_WHEN(connect, NO_SOCKETS),
	DENY_WHEN(bind, NO_SOCKETS), DENY_WHEN(listen, NO_SOCKETS),
	DENY_WHEN(accept, NO_SOCKETS), DENY_WHEN(accept4, NO_SOCKETS),
	DENY_IF(socket, ONLY_LOCAL, NONE_OF(0, ALL_BITS, AF_UNIX)),
	/* network enabled */
	DENY_IF(socket, ONLY_IP,
	    NONE_OF(0, ALL_BITS, AF_INET, AF_INET6, AF_NETLINK)),
	DENY_IF(socket, IP_AND_UNIX,
	    NONE_OF(0, ALL_BITS, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)),
	DENY_IF(socket, NETWORK, IS(0, AF_INET),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	DENY_IF(socket, NETWORK, IS(0, AF_INET6),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	DENY_IF(socket, NETWORK, IS(0, AF_NETLINK), NONE_OF(2, ALL_BITS, 0)),
	/*
	 * One end of a datagram pair can send to any address with sendmsg (O2),
	 * and a UNIX SOCK_RAW socket is a SOCK_DGRAM one.
	 */
	DENY_IF(socket, ONLY_LOCAL, IS(0, AF_UNIX),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET)),
	DENY_IF(socketpair, ALWAYS, NONE_OF(0, ALL_BITS, AF_UNIX)),
	DENY_IF(socketpair, NO_SOCKETS | ONLY_LOCAL | ONLY_IP,
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET))
};

const size_t command_filter_nrows = nitems(command_filter_rows);

static unsigned
network_rows(const struct command_filter_options *o)
{
	if (!o->network)
		return o->unix_allow ? ONLY_LOCAL : NO_SOCKETS;
	return o->unix_allow ? IP_AND_UNIX : ONLY_IP;
}

unsigned
command_filter_active(const struct command_filter_options *o)
{
	return ALWAYS | network_rows(o) | (o->allow_setid ? 0 : NO_SETID) |
	       (o->allow_setid || o->ask_setgid ? 0 : NO_SETGID) |
	       (o->allow_nested_userns ? 0 : NO_USERNS) |
	       (o->allow_32bit ? WITH_32BIT : 0) | (o->no_view ? NO_VIEW : 0) |
	       (o->no_chmod ? NO_CHMOD : 0) |
	       (o->allow_ptrace && !o->no_view ? 0 : NO_PTRACE);
}
