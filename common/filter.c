/*
 * Load a system-call policy that stands as a table.
 */
#include "filter.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config.h"
#include "log.h"

#if EXECD_SANDBOX_DEBUG
/* Names the call that has no row; the policy's author adds it or mends the
 * caller. */
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

static int
add_rule(scmp_filter_ctx ctx, const struct filter_rule *r)
{
	uint32_t action =
	    r->error ? SCMP_ACT_ERRNO((uint32_t)r->error) : SCMP_ACT_ALLOW;
	struct scmp_arg_cmp cmp = { .arg = r->argument,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = r->mask,
		.datum_b = r->value };

	return seccomp_rule_add_array(
	    ctx, action, r->syscall, r->compare, &cmp);
}

int
filter_load(const struct filter_rule *rules, size_t n)
{
	scmp_filter_ctx ctx = seccomp_init(DENIED);
	int err;

	if (ctx == NULL)
		return -ENOMEM;
	err = seccomp_attr_set(
	    ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A balanced tree instead of one long chain of compares. */
	if (err == 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < n && err == 0; i++)
		err = add_rule(ctx, &rules[i]);
	watch_denied();
	if (err == 0)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}
