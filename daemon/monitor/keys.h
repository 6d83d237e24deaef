/*
 * The key process: holds the private keys of the TLS listeners and signs
 * handshakes for the front-end, which never sees them. It serves one channel;
 * with another front-end or configuration comes another key process.
 */
#ifndef KEYS_H
#define KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue.h"

struct monitor;

struct key_process {
	TAILQ_ENTRY(key_process) link; /* keys.all */
	pid_t pid;
};

struct keys {
	TAILQ_HEAD(, key_process) all; /* older ones end by themselves */
	pid_t pid;		       /* the one in use, or 0 */
	int64_t started_ms;
	int64_t restart_ms; /* it died: another not before this; or 0 */
};

void keys_init(struct keys *k);

/* Starts one with the keys of the configuration in force. The front-end's end
 * of its channel, the caller's; -1: there is no key to hold; or -errno. */
int keys_start(struct monitor *m);

/* A child of that pid ended. False: not a key process. */
bool keys_reap(struct monitor *m, pid_t pid, int status);

bool keys_has(const struct keys *k, pid_t pid);

#endif
