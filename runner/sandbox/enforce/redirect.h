/* SPDX-License-Identifier: ISC */
/*
 * What takes the TCP connections of a sandbox with a list of hosts to
 * execd-netproxy, for programs that know no proxy (doc/sandbox.md B5): a route
 * for TCP alone, and rules of nf_tables in the sandbox's own network namespace.
 *
 *	to an address that stands for a name	to the listener of its block
 *	to any other one, from a block		to the listener of that block
 *
 * A block is an address of LOOPBACK_NAMES without its last 8 bits; each command
 * has one. Whoever listens asks the kernel which address was meant
 * (SO_ORIGINAL_DST). 127.0.0.0/8 and all that is not TCP stay as they are.
 *
 * Sources: rtnetlink(7), linux/netfilter/nf_tables.h, nft(8).
 */
#pragma once

/* The port of the listener, on the first address of a block. No command may
 * bind one below 1024. */
#define REDIRECT_PORT	    1
#define REDIRECT_BLOCK_BITS 8

/*
 * Makes route and rules in the caller's network namespace, which has the
 * addresses of loopback_add_names(). The caller needs CAP_NET_ADMIN there.
 * Returns 0, or -errno; -EOPNOTSUPP and -EPROTONOSUPPORT say that the kernel
 * has no nf_tables.
 */
int redirect_prepare(void);

/*
 * Finds out whether a sandbox can do that here: a child of the caller tries it
 * in new namespaces, as a sandbox makes them. userns: the session's user
 * namespace, or -1. Returns a descriptor for redirect_is_possible(), or -errno.
 */
int redirect_try(int userns);

/*
 * Waits for what that child found out, for at most so many milliseconds, and
 * closes the descriptor. Returns 1 or 0, or -ETIMEDOUT: nobody knows.
 */
#define REDIRECT_TRY_MS 2000
int redirect_is_possible(int fd, int timeout_ms);
