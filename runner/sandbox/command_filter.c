/*
 * The table of SANDBOX.md C4, and its way through libseccomp to BPF.
 *
 * The kernel takes these arguments as 32 bits, so that a compare looks at no
 * more: high bits must neither hide a value nor make a good one bad.
 */
#include "command_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

/* Calls that Debian 12's headers or libseccomp 2.5.4 do not name. Since Linux
 * 5.1 a new call has the same number everywhere, on i386 too. */
#define NR_fchmodat2	  452
#define NR_statmount	  457
#define NR_listmount	  458
#define NR_open_tree_attr 467

/* O_TMPFILE has the bit of O_DIRECTORY in it, which alone creates nothing. */
#define TMPFILE_BIT ((uint32_t)O_TMPFILE & ~(uint32_t)O_DIRECTORY)

#define ALL_BITS  0xffffffff
#define TYPE_BITS 0xf

/* When a row counts; exactly one of the last five holds. */
enum {
	ALWAYS = 1 << 0,
	NO_SETID = 1 << 1,
	NO_USERNS = 1 << 2,
	WITH_32BIT = 1 << 3,
	NO_SOCKETS = 1 << 4,  /* network restricted */
	ONLY_LOCAL = 1 << 5,  /* restricted, UNIX sockets by name */
	ONLY_IP = 1 << 6,     /* network enabled */
	IP_LOCAL = 1 << 7,    /* enabled, UNIX sockets by name */
	IP_AND_UNIX = 1 << 8, /* enabled, all UNIX sockets */
	NETWORK = ONLY_IP | IP_LOCAL | IP_AND_UNIX,
	ANY_LOCAL = ONLY_LOCAL | IP_LOCAL,
};

struct compare {
	unsigned argument;
	uint32_t mask; /* 0: no compare */
	bool none_of;  /* none of the values, instead of the only one */
	unsigned n;
	uint32_t values[4];
};

struct row {
	int call;
	int error;
	unsigned when;
	bool by_number;
	struct compare compares[2]; /* all must hold; none_of is the last */
};

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
#define DENY_NEW_IF(name, when, ...)                                           \
	BRACES(NR_##name, EPERM, when, true, BRACES(__VA_ARGS__))

/* Calls with a mode; calls with flags by which the mode counts. */
#define SETID(name, mode)                                                      \
	DENY_IF(name, NO_SETID, HAS(mode, S_ISUID)),                           \
	    DENY_IF(name, NO_SETID, HAS(mode, S_ISGID))
#define SETID_NEW(name, mode)                                                  \
	DENY_NEW_IF(name, NO_SETID, HAS(mode, S_ISUID)),                       \
	    DENY_NEW_IF(name, NO_SETID, HAS(mode, S_ISGID))
#define SETID_FLAG(name, flags, bit, mode)                                     \
	DENY_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISUID)),          \
	    DENY_IF(name, NO_SETID, HAS(flags, bit), HAS(mode, S_ISGID))

/* call, when, compares; DENY answers EPERM, ABSENT ENOSYS */
static const struct row rows[] = {
	/* other processes' memory and descriptors */
	DENY(ptrace), DENY(process_vm_readv), DENY(process_vm_writev),
	DENY(kcmp), DENY(pidfd_getfd), DENY(process_madvise),
	/* the view */
	DENY(mount), DENY(umount2), DENY(pivot_root), DENY(chroot),
	DENY(move_mount), DENY(open_tree), DENY_NEW(open_tree_attr),
	DENY(fsopen), DENY(fsconfig), DENY(fsmount), DENY(fspick),
	DENY(mount_setattr), DENY_NEW(statmount), DENY_NEW(listmount),
	/* handles go around the view */
	DENY(open_by_handle_at), DENY(name_to_handle_at),
	/* the kernel's surface */
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
	/* where memory lies; odd and old calls */
	DENY(move_pages), DENY(migrate_pages), DENY(mbind), DENY(set_mempolicy),
	DENY(modify_ldt), DENY(vmsplice), DENY(remap_file_pages), DENY(uselib),
	DENY(ustat), DENY(sysfs), DENY(nfsservctl),
	/* i386: arguments in memory, and older names of what is above */
	DENY_WHEN(socketcall, WITH_32BIT), DENY_WHEN(ipc, WITH_32BIT),
	DENY_WHEN(umount, WITH_32BIT), DENY_WHEN(stime, WITH_32BIT),
	DENY_WHEN(clock_settime64, WITH_32BIT),
	DENY_WHEN(clock_adjtime64, WITH_32BIT),

	/* namespaces; clone3 has its flags in memory, and glibc, musl and Go
	 * fall back on ENOSYS */
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

	/* devices; mkfifo is needed */
	DENY_IF(mknod, ALWAYS, NONE_OF(1, S_IFMT, 0, S_IFIFO, S_IFREG)),
	DENY_IF(mknodat, ALWAYS, NONE_OF(2, S_IFMT, 0, S_IFIFO, S_IFREG)),

	/* typing into a terminal, or taking it away */
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSTI)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCLINUX)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCCONS)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSETD)),
	DENY_IF(ioctl, ALWAYS, IS(1, TIOCSCTTY), IS(2, 1)),

	/* set-id bits; openat2 has its mode in memory */
	SETID(chmod, 1), SETID(fchmod, 1), SETID(fchmodat, 2),
	SETID_NEW(fchmodat2, 2), SETID(creat, 1), SETID(mknod, 1),
	SETID(mknodat, 2), SETID_FLAG(open, 1, O_CREAT, 2),
	SETID_FLAG(open, 1, TMPFILE_BIT, 2), SETID_FLAG(openat, 2, O_CREAT, 3),
	SETID_FLAG(openat, 2, TMPFILE_BIT, 3), ABSENT(openat2, NO_SETID),

	DENY_IF(personality, ALWAYS, NONE_OF(0, ALL_BITS, 0, 0xffffffff)),
	DENY_IF(prctl, ALWAYS, IS(0, PR_SET_MM)),
	DENY_IF(prctl, ALWAYS, IS(0, PR_SET_PTRACER)),

	/* network restricted */
	DENY_WHEN(socket, NO_SOCKETS), DENY_WHEN(connect, NO_SOCKETS),
	DENY_WHEN(bind, NO_SOCKETS), DENY_WHEN(listen, NO_SOCKETS),
	DENY_WHEN(accept, NO_SOCKETS), DENY_WHEN(accept4, NO_SOCKETS),
	DENY_IF(socket, ONLY_LOCAL, NONE_OF(0, ALL_BITS, AF_UNIX)),
	/* network enabled */
	DENY_IF(socket, ONLY_IP,
	    NONE_OF(0, ALL_BITS, AF_INET, AF_INET6, AF_NETLINK)),
	DENY_IF(socket, IP_LOCAL | IP_AND_UNIX,
	    NONE_OF(0, ALL_BITS, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)),
	DENY_IF(socket, NETWORK, IS(0, AF_INET),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	DENY_IF(socket, NETWORK, IS(0, AF_INET6),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_DGRAM)),
	DENY_IF(socket, NETWORK, IS(0, AF_NETLINK), NONE_OF(2, ALL_BITS, 0)),
	/* An end of a datagram pair can send anywhere with sendmsg (O2), and
	 * UNIX SOCK_RAW is SOCK_DGRAM by another name. */
	DENY_IF(socket, ANY_LOCAL, IS(0, AF_UNIX),
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET)),
	DENY_IF(socketpair, ALWAYS, NONE_OF(0, ALL_BITS, AF_UNIX)),
	DENY_IF(socketpair, NO_SOCKETS | ANY_LOCAL | ONLY_IP,
	    NONE_OF(1, TYPE_BITS, SOCK_STREAM, SOCK_SEQPACKET))
};

static unsigned
network_rows(const struct command_filter_options *o)
{
	if (!o->network)
		return o->unix_local || o->unix_allow ? ONLY_LOCAL : NO_SOCKETS;
	if (o->unix_allow)
		return IP_AND_UNIX;
	return o->unix_local ? IP_LOCAL : ONLY_IP;
}

static unsigned
active_rows(const struct command_filter_options *o)
{
	return ALWAYS | network_rows(o) | (o->allow_setid ? 0 : NO_SETID) |
	       (o->allow_nested_userns ? 0 : NO_USERNS) |
	       (o->allow_32bit ? WITH_32BIT : 0);
}

/* Whether a value of the list is in the block, or an earlier one's sibling
 * block is this. */
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

/* libseccomp has no «masked and not equal». As with prefixes of addresses: all
 * that differs from a value first at this bit is one block. */
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

/* A number without a name can only be added while there is one architecture;
 * those that come later start empty. */
static int
add_policy(scmp_filter_ctx ctx, unsigned active)
{
	int err;

	err = seccomp_attr_set(
	    ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (err == 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (err == 0)
		err = add_rows(ctx, active, true);
	if (err == 0 && (active & WITH_32BIT) && has_i386())
		err = seccomp_arch_add(ctx, SCMP_ARCH_X86);
	return err != 0 ? err : add_rows(ctx, active, false);
}

/* What libseccomp made, behind `prefix` instructions of room. */
static int
read_code(scmp_filter_ctx ctx, struct command_filter *f, size_t prefix)
{
	_cleanup_close_ int fd = memfd_create("command-filter", MFD_CLOEXEC);
	struct stat st;
	size_t len;
	int err;

	if (fd < 0)
		return -errno;
	err = seccomp_export_bpf(ctx, fd);
	if (err != 0)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	len = (size_t)st.st_size / sizeof(*f->code);
	if (prefix + len > BPF_MAXINSNS)
		return -E2BIG;
	f->code = xcalloc(prefix + len, sizeof(*f->code));
	f->len = (unsigned short)(prefix + len);
	if (pread(fd, f->code + prefix, (size_t)st.st_size, 0) != st.st_size) {
		command_filter_clear(f);
		return -EIO;
	}
	return 0;
}

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip)                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define PREFIX_MAX 64 /* two instructions, and 7 for each row by number */

/* One row by number, which has one compare at most. A little-endian
 * argument's low half comes first. */
static size_t
emit_row(struct sock_filter *at, const struct row *r)
{
	const struct compare *c = &r->compares[0];
	const struct sock_filter call[] = { LOAD(nr),
		UNLESS((uint32_t)r->call, c->mask != 0 ? 4 : 1) };
	const struct sock_filter compare[] = { LOAD(args[c->argument]),
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

/* The rows by number for i386; everything else jumps over them. */
static size_t
emit_prefix(struct sock_filter code[PREFIX_MAX], unsigned active)
{
	const struct sock_filter arch = LOAD(arch);
	size_t n = 2;

	if (!(active & WITH_32BIT) || !has_i386())
		return 0;
	for (size_t i = 0; i < nitems(rows); i++)
		if ((rows[i].when & active) && rows[i].by_number)
			n += emit_row(&code[n], &rows[i]);
	code[0] = arch;
	code[1] =
	    (struct sock_filter)UNLESS(AUDIT_ARCH_I386, (unsigned char)(n - 2));
	return n;
}

int
command_filter_compile(
    struct command_filter *f, const struct command_filter_options *o)
{
	unsigned active = active_rows(o);
	struct sock_filter prefix[PREFIX_MAX];
	size_t n = emit_prefix(prefix, active);
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	*f = (struct command_filter){
		.flags = o->log ? SECCOMP_FILTER_FLAG_LOG : 0,
	};
	if (ctx == NULL)
		return -ENOMEM;
	err = add_policy(ctx, active);
	if (err == 0)
		err = read_code(ctx, f, n);
	if (err == 0)
		memcpy(f->code, prefix, n * sizeof(*prefix));
	seccomp_release(ctx);
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
