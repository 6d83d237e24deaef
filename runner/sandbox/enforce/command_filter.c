/* SPDX-License-Identifier: ISC */
/* The two locks on a command's calls: the table of refused calls, compiled to
 * BPF with libseccomp, and Landlock. */
#include "command_filter.h"

#include <assert.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "filter.h"
#include "landlock.h"

/* When a row applies. Exactly one of NO_SOCKETS, ONLY_LOCAL and those in
 * NETWORK is active. */
enum {
	ALWAYS = 1 << 0,
	NO_SETID = 1 << 1,
	NO_USERNS = 1 << 2,
	WITH_32BIT = 1 << 3,
	NO_SOCKETS = 1 << 4,  /* network restricted */
	ONLY_LOCAL = 1 << 5,  /* restricted, UNIX sockets permitted */
	ONLY_IP = 1 << 6,     /* network enabled, or loopback */
	IP_AND_UNIX = 1 << 7, /* enabled, all UNIX sockets */
	NO_VIEW = 1 << 8,     /* no namespaces either */
	NO_CHMOD = 1 << 9,
	NO_PTRACE = 1 << 10,
	NO_SETGID = 1 << 11,	  /* not even on directories */
	IP_AND_STREAMS = 1 << 12, /* the same, and no UNIX datagrams */
	NO_FAST_OPEN = 1 << 13,
	ASKED_DATAGRAMS = 1 << 14, /* the proxy makes others instead */
	ONLY_STREAMS = 1 << 15,
	NETWORK = ONLY_IP | IP_AND_UNIX | IP_AND_STREAMS,
};

struct compare {
	unsigned argument;
	uint32_t mask; /* 0: no comparison */
	bool none_of;  /* matches if none of the values is equal */
	unsigned n;
	uint32_t values[4];
};

struct row {
	int call;
	int error;
	unsigned when;
	bool by_number;
	struct compare compares[2]; /* all must match; none_of comes last */
};

/*
 * The calls that commands may not make.
 *
 * The kernel reads these arguments as 32 bits, so a compare looks at 32 bits
 * only. Higher bits must neither hide a bad value nor make a good one bad.
 */

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

#define REFUSE(name)		REFUSE_WHEN(name, ALWAYS)
#define REFUSE_WHEN(name, when) BRACES(SCMP_SYS(name), EPERM, when, false)
#define REFUSE_NEW(name)	BRACES(NR_##name, EPERM, ALWAYS, true)
#define ABSENT(name, when)	BRACES(SCMP_SYS(name), ENOSYS, when, false)
#define REFUSE_IF(name, when, ...)                                             \
	BRACES(SCMP_SYS(name), EPERM, when, false, BRACES(__VA_ARGS__))
#define REFUSE_IOCTL(type, number)                                             \
	REFUSE_IF(                                                             \
	    ioctl, NO_VIEW, COMPARE(1, 0xffff, false, (type) << 8 | (number)))
#define FAST_OPEN(name, flags)                                                 \
	BRACES(SCMP_SYS(name), EOPNOTSUPP, NO_FAST_OPEN, false,                \
	    BRACES(HAS(flags, MSG_FASTOPEN)))
#define UNSUPPORTED(name)     BRACES(SCMP_SYS(name), EOPNOTSUPP, NO_VIEW, false)
#define UNSUPPORTED_NEW(name) BRACES(NR_##name, EOPNOTSUPP, NO_VIEW, true)
#define REFUSE_NEW_IF(name, when, ...)                                         \
	BRACES(NR_##name, EPERM, when, true, BRACES(__VA_ARGS__))

/*
 * SETID: calls with a mode. SETID_CHANGE: calls that may change a directory.
 * SETID_FLAG: calls whose mode counts only with a flag.
 */
#define SETID(name, mode)                                                      \
	REFUSE_IF(name, NO_SETID, HAS(mode, S_ISUID)),                         \
	    REFUSE_IF(name, NO_SETID, HAS(mode, S_ISGID))
#define SETID_CHANGE(name, mode)                                               \
	REFUSE_IF(name, NO_SETID, HAS(mode, S_ISUID)),                         \
	    REFUSE_IF(name, NO_SETGID, HAS(mode, S_ISGID))
#define SETID_CHANGE_NEW(name, mode)                                           \
	REFUSE_NEW_IF(name, NO_SETID, HAS(mode, S_ISUID)),                     \
	    REFUSE_NEW_IF(name, NO_SETGID, HAS(mode, S_ISGID))
#define SETID_FLAG(name, flags, bit, mode)                                     \
	REFUSE_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISUID)),        \
	    REFUSE_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISGID))

/* REFUSE answers EPERM, ABSENT answers ENOSYS. */
static const struct row rows[] = {
	/*
	 * Memory and descriptors of other processes. A debugger needs the first
	 * three for its own children and reaches nobody else: the pid namespace
	 * of the command has no other processes, and its init cannot be traced.
	 */
	REFUSE_WHEN(ptrace, NO_PTRACE),
	REFUSE_WHEN(process_vm_readv, NO_PTRACE),
	REFUSE_WHEN(process_vm_writev, NO_PTRACE), REFUSE(kcmp),
	REFUSE(pidfd_getfd), REFUSE(process_madvise),
	/* the view */
	REFUSE(mount), REFUSE(umount2), REFUSE(pivot_root), REFUSE(chroot),
	REFUSE(move_mount), REFUSE(open_tree), REFUSE_NEW(open_tree_attr),
	REFUSE(fsopen), REFUSE(fsconfig), REFUSE(fsmount), REFUSE(fspick),
	REFUSE(mount_setattr), REFUSE_NEW(statmount), REFUSE_NEW(listmount),
	/* handles bypass the view */
	REFUSE(open_by_handle_at), REFUSE(name_to_handle_at),
	/* the kernel's attack surface */
	REFUSE(bpf), REFUSE(userfaultfd), REFUSE(perf_event_open),
	REFUSE(keyctl), REFUSE(add_key), REFUSE(request_key),
	REFUSE(io_uring_setup), REFUSE(io_uring_enter),
	REFUSE(io_uring_register), REFUSE(syslog), REFUSE(lookup_dcookie),
	REFUSE(fanotify_init),
	/* the machine */
	REFUSE(init_module), REFUSE(finit_module), REFUSE(delete_module),
	REFUSE(kexec_load), REFUSE(kexec_file_load), REFUSE(reboot),
	REFUSE(swapon), REFUSE(swapoff), REFUSE(acct), REFUSE(quotactl),
	REFUSE(quotactl_fd), REFUSE(iopl), REFUSE(ioperm),
	REFUSE(clock_settime), REFUSE(settimeofday), REFUSE(clock_adjtime),
	REFUSE(adjtimex), REFUSE(sethostname), REFUSE(setdomainname),
	REFUSE(vhangup),
	/* placement of memory; rare and old calls */
	REFUSE(move_pages), REFUSE(migrate_pages), REFUSE(mbind),
	REFUSE(set_mempolicy), REFUSE(modify_ldt), REFUSE(vmsplice),
	REFUSE(remap_file_pages), REFUSE(uselib), REFUSE(ustat), REFUSE(sysfs),
	REFUSE(nfsservctl),
	/* i386: arguments in memory, and older names of the calls above */
	REFUSE_WHEN(socketcall, WITH_32BIT), REFUSE_WHEN(ipc, WITH_32BIT),
	REFUSE_WHEN(umount, WITH_32BIT), REFUSE_WHEN(stime, WITH_32BIT),
	REFUSE_WHEN(clock_settime64, WITH_32BIT),
	REFUSE_WHEN(clock_adjtime64, WITH_32BIT),

	/*
	 * Namespaces. clone3 has its flags in memory; glibc, musl and Go fall
	 * back to clone on ENOSYS.
	 */
	REFUSE_WHEN(setns, NO_USERNS), REFUSE_WHEN(unshare, NO_USERNS),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWNS)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWUSER)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWPID)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWNET)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWIPC)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWUTS)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWCGROUP)),
	REFUSE_IF(clone, NO_USERNS, HAS(0, CLONE_NEWTIME)),
	ABSENT(clone3, NO_USERNS),

	/* Devices. mkfifo is needed. */
	REFUSE_IF(mknod, ALWAYS, NONE_OF(1, S_IFMT, 0, S_IFIFO, S_IFREG)),
	REFUSE_IF(mknodat, ALWAYS, NONE_OF(2, S_IFMT, 0, S_IFIFO, S_IFREG)),

	/* typing into a terminal, or taking it from its session */
	REFUSE_IF(ioctl, ALWAYS, IS(1, TIOCSTI)),
	REFUSE_IF(ioctl, ALWAYS, IS(1, TIOCLINUX)),
	REFUSE_IF(ioctl, ALWAYS, IS(1, TIOCCONS)),
	REFUSE_IF(ioctl, ALWAYS, IS(1, TIOCSETD)),
	REFUSE_IF(ioctl, ALWAYS, IS(1, TIOCSCTTY), IS(2, 1)),

	/* Set-id bits. openat2 has its mode in memory. */
	SETID_CHANGE(chmod, 1), SETID_CHANGE(fchmod, 1),
	SETID_CHANGE(fchmodat, 2), SETID_CHANGE_NEW(fchmodat2, 2),
	SETID(creat, 1), SETID(mknod, 1), SETID(mknodat, 2),
	SETID_FLAG(open, 1, O_CREAT, 2), SETID_FLAG(open, 1, TMPFILE_BIT, 2),
	SETID_FLAG(openat, 2, O_CREAT, 3),
	SETID_FLAG(openat, 2, TMPFILE_BIT, 3), ABSENT(openat2, NO_SETID),

	/*
	 * The init of the command's pid namespace, which has its user: a limit,
	 * a scheduler or a priority could stop it from doing its work. A user's
	 * or a group's priority is also init's.
	 */
	REFUSE_IF(prlimit64, ALWAYS, IS(0, 1)),
	REFUSE_IF(sched_setscheduler, ALWAYS, IS(0, 1)),
	REFUSE_IF(sched_setparam, ALWAYS, IS(0, 1)),
	REFUSE_IF(sched_setattr, ALWAYS, IS(0, 1)),
	REFUSE_IF(sched_setaffinity, ALWAYS, IS(0, 1)),
	REFUSE_IF(setpriority, ALWAYS, IS(1, 1)),
	REFUSE_IF(setpriority, ALWAYS, IS(0, PRIO_USER)),
	REFUSE_IF(ioprio_set, ALWAYS, IS(1, 1)),
	REFUSE_IF(ioprio_set, ALWAYS, IS(0, IOPRIO_WHO_USER)),

	/*
	 * gdb and setarch -R switch off address randomization for the programs
	 * that they start.
	 */
	REFUSE_IF(personality, ALWAYS,
	    NONE_OF(0, ALL_BITS, 0, ADDR_NO_RANDOMIZE, 0xffffffff)),
	REFUSE_IF(prctl, ALWAYS, IS(0, PR_SET_MM)),
	/* The thread of LeakSanitizer traces its own process. */
	REFUSE_IF(prctl, NO_PTRACE, IS(0, PR_SET_PTRACER)),

	/*
	 * Without a view: attributes and owners of files that may only be read.
	 * Programs that copy attributes treat EOPNOTSUPP as a file system
	 * without them.
	 */
	UNSUPPORTED(setxattr), UNSUPPORTED(lsetxattr), UNSUPPORTED(fsetxattr),
	UNSUPPORTED(removexattr), UNSUPPORTED(lremovexattr),
	UNSUPPORTED(fremovexattr), UNSUPPORTED_NEW(setxattrat),
	UNSUPPORTED_NEW(removexattrat), UNSUPPORTED_NEW(file_setattr),
	REFUSE_WHEN(chown, NO_VIEW), REFUSE_WHEN(lchown, NO_VIEW),
	REFUSE_WHEN(fchown, NO_VIEW), REFUSE_WHEN(fchownat, NO_VIEW),
	REFUSE_WHEN(chown32, NO_VIEW), REFUSE_WHEN(lchown32, NO_VIEW),
	REFUSE_WHEN(fchown32, NO_VIEW),
	/*
	 * The same, and new names in directories, through a descriptor for
	 * reading: FS_IOC_SETFLAGS, encryption, verity, FSSETXATTR; attributes
	 * of FAT; links of OCFS2; subvolumes and snapshots of Btrfs.
	 */
	REFUSE_IOCTL('f', 2), REFUSE_IOCTL('f', 19), REFUSE_IOCTL('f', 133),
	REFUSE_IOCTL('X', 32), REFUSE_IOCTL('r', 17), REFUSE_IOCTL('o', 4),
	REFUSE_IOCTL(0x94, 1), REFUSE_IOCTL(0x94, 14), REFUSE_IOCTL(0x94, 15),
	REFUSE_IOCTL(0x94, 23), REFUSE_IOCTL(0x94, 24), REFUSE_IOCTL(0x94, 26),
	REFUSE_IOCTL(0x94, 37), REFUSE_IOCTL(0x94, 63),
	/* memory and messages that the user's other processes share */
	REFUSE_WHEN(shmget, NO_VIEW), REFUSE_WHEN(shmat, NO_VIEW),
	REFUSE_WHEN(shmctl, NO_VIEW), REFUSE_WHEN(semget, NO_VIEW),
	REFUSE_WHEN(semop, NO_VIEW), REFUSE_WHEN(semtimedop, NO_VIEW),
	REFUSE_WHEN(semctl, NO_VIEW), REFUSE_WHEN(semtimedop_time64, NO_VIEW),
	REFUSE_WHEN(msgget, NO_VIEW), REFUSE_WHEN(msgsnd, NO_VIEW),
	REFUSE_WHEN(msgrcv, NO_VIEW), REFUSE_WHEN(msgctl, NO_VIEW),
	REFUSE_WHEN(mq_open, NO_VIEW), REFUSE_WHEN(mq_unlink, NO_VIEW),
	/*
	 * Modes of files that may only be read, where the caller is the file
	 * helper.
	 */
	REFUSE_WHEN(chmod, NO_CHMOD), REFUSE_WHEN(fchmodat, NO_CHMOD),
	BRACES(NR_fchmodat2, EPERM, NO_CHMOD, true),
	/* limits of other processes */
	REFUSE_IF(prlimit64, NO_VIEW, NONE_OF(0, ALL_BITS, 0)),

	/* network restricted */
	REFUSE_WHEN(socket, NO_SOCKETS), REFUSE_WHEN(connect, NO_SOCKETS),
	REFUSE_WHEN(bind, NO_SOCKETS), REFUSE_WHEN(listen, NO_SOCKETS),
	REFUSE_WHEN(accept, NO_SOCKETS), REFUSE_WHEN(accept4, NO_SOCKETS),
	REFUSE_IF(socket, ONLY_LOCAL, NONE_OF(0, ALL_BITS, AF_UNIX)),
	/* network enabled, or a loopback of its own */
	REFUSE_IF(socket, ONLY_IP,
	    NONE_OF(0, ALL_BITS, AF_INET, AF_INET6, AF_NETLINK)),
	REFUSE_IF(socket, IP_AND_UNIX | IP_AND_STREAMS,
	    NONE_OF(0, ALL_BITS, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)),
	REFUSE_IF(socket, NETWORK, IS(0, AF_INET),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	REFUSE_IF(socket, NETWORK, IS(0, AF_INET6),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	REFUSE_IF(socket, NETWORK, IS(0, AF_NETLINK), NONE_OF(2, ALL_BITS, 0)),
	/* The kernel's answer where this is switched off. */
	FAST_OPEN(sendto, 3), FAST_OPEN(sendmsg, 2), FAST_OPEN(sendmmsg, 3),
	/*
	 * A datagram socket can send to any address with sendmsg (O2), and a
	 * UNIX SOCK_RAW socket is a SOCK_DGRAM one. The proxy makes another
	 * one instead (call_proxy.h).
	 */
	REFUSE_IF(socket, ONLY_STREAMS, IS(0, AF_UNIX),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET)),
	REFUSE_IF(socket, ASKED_DATAGRAMS, IS(0, AF_UNIX),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM)),
	REFUSE_IF(socketpair, ALWAYS, NONE_OF(0, ALL_BITS, AF_UNIX)),
	REFUSE_IF(socketpair, ONLY_STREAMS,
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET)),
	REFUSE_IF(socketpair, ASKED_DATAGRAMS,
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM))
};

static unsigned
network_rows(const struct command_filter_options *o)
{
	bool streams = o->unix_allow || o->own_unix;

	if (!o->network && !o->loopback)
		return o->unix_allow ? ONLY_LOCAL : NO_SOCKETS;
	if (o->network && o->unix_allow)
		return IP_AND_UNIX;
	return streams ? IP_AND_STREAMS : ONLY_IP;
}

static unsigned
datagram_rows(const struct command_filter_options *o)
{
	if (o->network && o->unix_allow)
		return 0;
	return o->own_unix ? ASKED_DATAGRAMS : ONLY_STREAMS;
}

/* Returns the mask of the rows that apply. */
static unsigned
active_rows(const struct command_filter_options *o)
{
	return ALWAYS | network_rows(o) | datagram_rows(o) |
	       (o->allow_setid ? 0 : NO_SETID) |
	       (o->allow_setid || o->ask_setgid ? 0 : NO_SETGID) |
	       (o->allow_nested_userns ? 0 : NO_USERNS) |
	       (o->allow_32bit ? WITH_32BIT : 0) | (o->no_view ? NO_VIEW : 0) |
	       (o->no_chmod ? NO_CHMOD : 0) |
	       (o->no_fast_open ? NO_FAST_OPEN : 0) |
	       (o->allow_ptrace && !o->no_view ? 0 : NO_PTRACE);
}

/*
 * Tells whether the block must be skipped: it contains a value of the list, or
 * an earlier value gave the same block.
 */
static bool
is_done(const struct compare *c, unsigned i, const struct scmp_arg_cmp *block,
    uint32_t bit)
{
	for (unsigned j = 0; j < c->n; j++) {
		if ((c->values[j] & block->datum_a) == block->datum_b)
			return true;
		if (j < i &&
		    ((c->values[j] ^ bit) & block->datum_a) == block->datum_b)
			return true;
	}
	return false;
}

static int
add_rule(scmp_filter_ctx ctx, const struct row *r, unsigned n,
    const struct scmp_arg_cmp *cmp)
{
	return seccomp_rule_add_array(
	    ctx, SCMP_ACT_ERRNO((uint32_t)r->error), r->call, n, cmp);
}

/*
 * Refuses all values that are not in the list. libseccomp has no "masked and
 * not equal", so this works as with prefixes of addresses: all values that
 * first differ from a listed value at one bit form one block.
 */
static int
add_none_of(scmp_filter_ctx ctx, const struct row *r, unsigned n,
    struct scmp_arg_cmp *cmp)
{
	const struct compare *c = &r->compares[n - 1];
	struct scmp_arg_cmp *block = &cmp[n - 1];
	int err = 0;

	for (uint32_t bit = 1u << 31; bit != 0 && err == 0; bit >>= 1)
		for (unsigned i = 0; i < c->n && err == 0; i++) {
			block->datum_a = c->mask & ~(bit - 1);
			block->datum_b = (c->values[i] ^ bit) & block->datum_a;
			if ((c->mask & bit) && !is_done(c, i, block, bit))
				err = add_rule(ctx, r, n, cmp);
		}
	return err;
}

static int
add_row(scmp_filter_ctx ctx, const struct row *r)
{
	struct scmp_arg_cmp cmp[nitems(r->compares)];
	unsigned n;

	for (n = 0; n < nitems(cmp) && r->compares[n].mask != 0; n++) {
		cmp[n].arg = r->compares[n].argument;
		cmp[n].op = SCMP_CMP_MASKED_EQ;
		cmp[n].datum_a = r->compares[n].mask;
		cmp[n].datum_b = r->compares[n].values[0];
	}
	if (n > 0 && r->compares[n - 1].none_of)
		return add_none_of(ctx, r, n, cmp);
	return add_rule(ctx, r, n, cmp);
}

static int
add_rows(scmp_filter_ctx ctx, unsigned active, bool by_number)
{
	int err = 0;

	for (size_t i = 0; i < nitems(rows) && err == 0; i++)
		if ((rows[i].when & active) && rows[i].by_number == by_number)
			err = add_row(ctx, &rows[i]);
	return err;
}

static bool
has_i386(void)
{
	return seccomp_arch_native() == SCMP_ARCH_X86_64;
}

/*
 * A number without a name can be added only while there is one architecture. An
 * architecture that is added later starts without rules.
 */
static int
add_policy(void *ctx, const void *policy)
{
	unsigned active = *(const unsigned *)policy;
	int err = add_rows(ctx, active, true);

	if (err == 0 && (active & WITH_32BIT) && has_i386())
		err = seccomp_arch_add(ctx, SCMP_ARCH_X86);
	return err != 0 ? err : add_rows(ctx, active, false);
}

#define UNLESS(value, skip)                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define ROW_MAX	   6  /* instructions of one row by number */
#define PREFIX_MAX 64 /* two instructions, and those of the rows by number */

/* One jump leads over all of them. */
static_assert(PREFIX_MAX - 2 <= UINT8_MAX, "a jump is one byte");

/*
 * Writes one row by number, which has at most one compare. On little-endian
 * machines the low half of an argument comes first.
 */
static size_t
emit_row(struct sock_filter *at, const struct row *r)
{
	const struct compare *c = &r->compares[0];
	const struct sock_filter call[] = { FILTER_LOAD(nr),
		UNLESS((uint32_t)r->call, c->mask != 0 ? 4 : 1) };
	const struct sock_filter compare[] = { FILTER_LOAD(args[c->argument]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask),
		UNLESS(c->values[0], 1) };
	const struct sock_filter answer =
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)r->error);
	size_t n = nitems(call);

	memcpy(at, call, sizeof(call));
	if (c->mask != 0) {
		memcpy(at + n, compare, sizeof(compare));
		n += nitems(compare);
	}
	at[n++] = answer;
	return n;
}

/*
 * Writes the rows by number for i386. Other architectures jump over them.
 * Returns 0 with *count, or -E2BIG if the rows have become too many.
 */
static int
emit_prefix(struct sock_filter code[PREFIX_MAX], unsigned active, size_t *count)
{
	const struct sock_filter arch = FILTER_LOAD(arch);
	size_t n = 2;

	*count = 0;
	if (!(active & WITH_32BIT) || !has_i386())
		return 0;
	for (size_t i = 0; i < nitems(rows); i++) {
		const struct row *r = &rows[i];

		if (!(r->when & active) || !r->by_number)
			continue;
		if (n + ROW_MAX > PREFIX_MAX)
			return -E2BIG;
		n += emit_row(&code[n], r);
	}
	code[0] = arch;
	code[1] = (struct sock_filter)UNLESS(AUDIT_ARCH_I386, (uint8_t)(n - 2));
	*count = n;
	return 0;
}

int
command_filter_compile(
    struct command_filter *f, const struct command_filter_options *o)
{
	unsigned active = active_rows(o);
	struct sock_filter prefix[PREFIX_MAX];
	struct filter_program p;
	size_t n;
	int err = filter_compile(&p, SCMP_ACT_ALLOW, add_policy, &active);

	*f = (struct command_filter){
		.flags = o->log ? SECCOMP_FILTER_FLAG_LOG : 0,
	};
	if (err == 0)
		err = emit_prefix(prefix, active, &n);
	if (err == 0 && n + p.len > BPF_MAXINSNS)
		err = -E2BIG;
	if (err == 0) {
		f->code = xcalloc(n + p.len, sizeof(*f->code));
		f->len = (unsigned short)(n + p.len);
		memcpy(f->code, prefix, n * sizeof(*prefix));
		memcpy(f->code + n, p.code, p.len * sizeof(*p.code));
	}
	filter_program_clear(&p);
	return err;
}

int
command_filter_load(const struct command_filter *f)
{
	struct sock_fprog program = { .len = f->len, .filter = f->code };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, f->flags, &program) <
	    0)
		return -errno;
	return 0;
}

void
command_filter_clear(struct command_filter *f)
{
	free(f->code);
	*f = (struct command_filter){ 0 };
}

/* Makes a Landlock ruleset from a policy (doc/sandbox.md C5). */

/* Rights that change a directory: creating, removing, moving. */
#define DIRECTORY_RIGHTS                                                       \
	(LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_CHAR |     \
	    LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK |       \
	    LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_BLOCK | LANDLOCK_MAKE_SYM |     \
	    LANDLOCK_REFER)

/* Rights that change a file. Neither list has a right to read or execute. */
#define FILE_RIGHTS                                                            \
	(LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV)

int
command_landlock_abi(void)
{
	int abi = landlock_abi();

	return abi == -ENOSYS || abi == -EOPNOTSUPP ? 0 : abi;
}

static int
allow_writing(
    int ruleset, const struct command_landlock_place *p, uint64_t handled)
{
	uint64_t rights = p->directory ? handled : handled & FILE_RIGHTS;

	return landlock_allow(ruleset, p->fd,
	    p->no_sockets ? rights & ~LANDLOCK_MAKE_SOCK : rights);
}

/* What this ABI can restrict of it. */
static struct landlock_attr
restricted(const struct command_landlock_options *o, int abi)
{
	struct landlock_attr attr = {
		.fs = o->restrict_files ? DIRECTORY_RIGHTS | FILE_RIGHTS : 0,
		.net =
		    o->network ? 0 : LANDLOCK_BIND_TCP | LANDLOCK_CONNECT_TCP,
		.scopes = LANDLOCK_SCOPE_ABSTRACT | LANDLOCK_SCOPE_SIGNAL,
	};

	landlock_mask(&attr, abi);
	return attr;
}

bool
command_landlock_is_empty(const struct command_landlock_options *o)
{
	struct landlock_attr attr = restricted(o, o->abi);

	return attr.fs == 0 && attr.net == 0 && attr.scopes == 0;
}

int
command_landlock_make(const struct command_landlock_options *o)
{
	int abi = o->abi > 0 ? o->abi : command_landlock_abi(), err = 0;
	struct landlock_attr attr = restricted(o, abi > 0 ? abi : 0);
	_cleanup_close_ int ruleset = -1;

	ruleset = landlock_create(&attr, abi);
	if (ruleset < 0 || !o->restrict_files)
		return steal_fd(&ruleset);
	for (size_t i = 0; i < o->writable_count && err == 0; i++)
		err = allow_writing(ruleset, &o->writable[i], attr.fs);
	return err != 0 ? err : steal_fd(&ruleset);
}

/* Before ABI 7 the kernel refuses the flags and logs nothing. */
int
command_landlock_load(int ruleset)
{
	int err = landlock_restrict(
	    ruleset, LANDLOCK_LOG_SAME_EXEC_OFF | LANDLOCK_LOG_SUBDOMAINS_OFF);

	return err == -EINVAL ? landlock_restrict(ruleset, 0) : err;
}
