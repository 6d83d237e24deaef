/* SPDX-License-Identifier: ISC */
/*
 * The front-end's helpers. The key process holds the private keys of the TLS
 * listeners and signs handshakes. The certificate process holds the client CAs
 * and verifies certificates. They are two processes of one program, so that a
 * process which a hostile certificate could break into holds no key. Each
 * serves one channel, and a new front-end or configuration gets new processes.
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
	/* when another process replaced it; 0: it is in use */
	int64_t replaced_ms;
	bool killed; /* because it did not answer */
	/* with which it seals its verdicts */
	uint8_t secret[CONTROL_SECRET_BYTES];
};

struct helpers {
	TAILQ_HEAD(, helper_process) all; /* replaced ones end by themselves */
	/* a helper died: no new one before this; 0: none died */
	int64_t restart_ms;
};

void helpers_init(struct helpers *h);

/* Starts a helper of each kind that the current configuration needs. fds[] are
 * the front-end's ends of their channels, the caller's, or -1. Failures are
 * logged. */
void helpers_start(struct broker *m, int fds[TLS_HELPERS]);

/* A child with that pid ended. Returns false if it is not a helper. */
bool helpers_reap(struct broker *m, pid_t pid, int status);

/* The helpers of this kind that are in use hang: kills them. Others replace
 * them when they are reaped. */
void helpers_kill(struct helpers *h, enum tls_helper kind);

/* Tells whether a helper that is in use is being ended because it does not
 * answer. */
bool helpers_are_ending(const struct helpers *h);

/*
 * Tells whether a certificate process has sealed this verdict: one that still
 * counts, for this listener, and not longer ago than a client may take. So a
 * front-end can neither make a verdict nor keep one for later.
 */
bool helpers_vouch(const struct broker *m, uint32_t listener,
    const struct control_cert_verdict *v);

#endif
