/* SPDX-License-Identifier: ISC */
/* Compiles the table of refused calls to BPF with libseccomp. */
#include "command_filter_rows.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
#include "util.h"

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

	for (size_t i = 0; i < command_filter_nrows && err == 0; i++)
		if ((command_filter_rows[i].when & active) &&
		    command_filter_rows[i].by_number == by_number)
			err = add_row(ctx, &command_filter_rows[i]);
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

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
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

/*
 * Writes the rows by number for i386. Other architectures jump over them.
 * Returns 0 with *count, or -E2BIG if the rows have become too many.
 */
static int
emit_prefix(struct sock_filter code[PREFIX_MAX], unsigned active, size_t *count)
{
	const struct sock_filter arch = LOAD(arch);
	size_t n = 2;

	*count = 0;
	if (!(active & WITH_32BIT) || !has_i386())
		return 0;
	for (size_t i = 0; i < command_filter_nrows; i++) {
		const struct row *r = &command_filter_rows[i];

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
	unsigned active = command_filter_active(o);
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
