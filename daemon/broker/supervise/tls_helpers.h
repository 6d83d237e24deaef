/* SPDX-License-Identifier: ISC */
/*
 * The front-end's helpers: the key process holds the private keys of the TLS
 * listeners and signs handshakes, the certificate process holds the client CAs
 * and verifies. One program, two processes: what a hostile certificate could
 * break holds no key. Each serves one channel; with another front-end or
 * configuration come other processes.
 */
#ifndef TLS_HELPERS_H
#define TLS_HELPERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "queue.h"

struct broker;

struct helper_process {
	TAILQ_ENTRY(helper_process) link; /* helpers.all */
	enum tls_helper kind;
	pid_t pid;
	int64_t started_ms;
	int64_t replaced_ms; /* another took its place; 0: not yet */
	bool killed;	     /* it did not answer */
	uint8_t secret[CONTROL_SECRET_BYTES]; /* seals its verdicts */
};

struct helpers {
	TAILQ_HEAD(, helper_process) all; /* older ones end by themselves */
	int64_t restart_ms; /* one died: others not before this; or 0 */
};

void helpers_init(struct helpers *h);

/* Starts one of each kind that the configuration in force needs. fds[]: the
 * front-end's ends of their channels, the caller's, or -1. What fails is
 * logged. */
void helpers_start(struct broker *m, int fds[TLS_HELPERS]);

/* A child of that pid ended. False: not a helper. */
bool helpers_reap(struct broker *m, pid_t pid, int status);

/* Those of this kind that are in use hang: others take over when they are
 * reaped. */
void helpers_kill(struct helpers *h, enum tls_helper kind);

/* Is one of those in use being ended, because it does not answer? */
bool helpers_are_ending(const struct helpers *h);

/*
 * Does a certificate process vouch for this? One of those that still count,
 * for this listener, and not longer ago than a client may take: so a
 * front-end can neither make one nor keep one for later.
 */
bool helpers_vouch(const struct broker *m, uint32_t listener,
    const struct control_cert_verdict *v);

#endif
