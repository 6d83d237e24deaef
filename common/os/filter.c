/* SPDX-License-Identifier: ISC */
/*
 * System-call filters, compiled to BPF by libseccomp.
 *
 * libseccomp 2.5 does not always notice that it is out of memory. It may return
 * success with rules missing, or never return. Both cases are detected here, by
 * errno and by a limit on processor time.
 */
#include "filter.h"

#include <seccomp.h>

#include "config.h"
#include "heap.h"

#if EXECD_SANDBOX_DEBUG
/* Logs the name of a system call without a row. The author of the policy then
 * adds a row or changes the caller. */
static void
on_denied(int sig, siginfo_t *info, void *context)
{
	char *name = seccomp_syscall_resolve_num_arch(
	    SCMP_ARCH_NATIVE, info->si_syscall);

	log_error(0, "system call denied: %s (%d)", name ? name : "unknown",
	    info->si_syscall);
	_exit(128 + SIGSYS);
}

static void
watch_denied(void)
{
	struct sigaction sa = { .sa_sigaction = on_denied,
		.sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &sa, NULL);
}
#define DENIED SCMP_ACT_TRAP
#else
static void
watch_denied(void)
{
}
#define DENIED SCMP_ACT_KILL_PROCESS
#endif

/* `plain` is the action for a row without an errno. */
static int
add_rule(scmp_filter_ctx ctx, const struct filter_rule *r, uint32_t plain)
{
	uint32_t action = r->error ? SCMP_ACT_ERRNO((uint32_t)r->error) : plain;
	struct scmp_arg_cmp cmp = { .arg = r->argument,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = r->mask,
		.datum_b = r->value };

	return seccomp_rule_add_array(
	    ctx, action, r->syscall, r->compare, &cmp);
}

/* --- export ------------------------------------------------------------- */

/* Compiling takes milliseconds. When this much processor time is used, SIGPROF
 * kills the process. */
#define COMPILE_SECONDS 10

static void
limit_time(int seconds)
{
	static sigset_t before; /* signals.h */
	struct itimerval t = { .it_value.tv_sec = seconds };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	/* One that came by mistake is discarded. */
	while (seconds > 0 &&
	       sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
		continue;
	if (seconds > 0)
		sigprocmask(SIG_UNBLOCK, &set, &before);
	setitimer(ITIMER_PROF, &t, NULL);
	if (seconds == 0)
		sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Returns the error, or -ENOMEM if errno says that memory was missing. */
static int
judge(int err)
{
	return err == 0 && errno == ENOMEM ? -ENOMEM : err;
}

/* Copies the program. It must consist of whole instructions and end with a
 * return. The kernel checks the rest when the filter is loaded. */
static int
take_program(struct filter_program *p, const void *code, size_t bytes)
{
	size_t n = bytes / sizeof(*p->code);

	if (n == 0 || n > BPF_MAXINSNS || bytes % sizeof(*p->code) != 0)
		return -EIO;
	p->code = malloc(bytes);
	if (p->code == NULL)
		return -ENOMEM;
	memcpy(p->code, code, bytes);
	p->len = (unsigned short)n;
	if (BPF_CLASS(p->code[n - 1].code) == BPF_RET)
		return 0;
	filter_program_clear(p);
	return -EIO;
}

/* Reads everything from a pipe whose other end is closed. libseccomp takes a
 * short write for a complete one, so a full pipe counts as an error. */
static int
read_program(int fd, struct filter_program *p)
{
	static heap_aligned char code[BPF_MAXINSNS * sizeof(*p->code)];
	int size = fcntl(fd, F_GETPIPE_SZ);
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, code + len, sizeof(code) - len)) > 0)
		len += (size_t)n;
	if (n < 0 || size < 0)
		return -errno;
	return len < (size_t)size ? take_program(p, code, len) : -EIO;
}

/* Exports through a pipe, because the process may not be permitted to write
 * files. */
static int export(scmp_filter_ctx ctx, struct filter_program *p)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	err = judge(seccomp_export_bpf(ctx, fds[1]));
	close(fds[1]);
	if (err == 0)
		err = read_program(fds[0], p);
	close(fds[0]);
	return err;
}

static int
compile(scmp_filter_ctx ctx, filter_fill fill, const void *policy,
    struct filter_program *p)
{
	int err = seccomp_attr_set(
	    ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	/* Makes a balanced tree instead of one long chain of comparisons. */
	if (err == 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	err = judge(err == 0 ? fill(ctx, policy) : err);
	return err != 0 ? err : export(ctx, p);
}

int
filter_compile(struct filter_program *p, uint32_t otherwise, filter_fill fill,
    const void *policy)
{
	scmp_filter_ctx ctx;
	int err;

	*p = (struct filter_program){ 0 };
	errno = 0;
	limit_time(COMPILE_SECONDS);
	ctx = seccomp_init(otherwise);
	err = judge(ctx == NULL ? -ENOMEM : 0);
	if (err == 0)
		err = compile(ctx, fill, policy, p);
	seccomp_release(ctx);
	limit_time(0);
	return err;
}

void
filter_program_clear(struct filter_program *p)
{
	free(p->code);
	*p = (struct filter_program){ 0 };
}

/* --- tables ------------------------------------------------------------- */

struct table {
	const struct filter_rule *rules;
	size_t n;
	uint32_t plain; /* action for a row without an errno */
};

static int
add_rules(void *ctx, const void *policy)
{
	const struct table *t = policy;
	int err = 0;

	for (size_t i = 0; i < t->n && err == 0; i++)
		err = add_rule(ctx, &t->rules[i], t->plain);
	return err;
}

static int
load(uint32_t otherwise, const struct table *table)
{
	struct filter_program p;
	struct sock_fprog program;
	int err = filter_compile(&p, otherwise, add_rules, table);

	if (err != 0)
		return err;
	watch_denied();
	program = (struct sock_fprog){ .len = p.len, .filter = p.code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		err = -errno;
	filter_program_clear(&p);
	return err;
}

int
filter_load(const struct filter_rule *rules, size_t n)
{
	const struct table table = { rules, n, SCMP_ACT_ALLOW };

	return load(DENIED, &table);
}

int
filter_load_denied(const struct filter_rule *rules, size_t n)
{
	const struct table table = { rules, n, DENIED };

	return load(SCMP_ACT_ALLOW, &table);
}
