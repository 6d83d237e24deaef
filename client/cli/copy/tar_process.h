/* SPDX-License-Identifier: ISC */
/*
 * tar(1) of GNU as a process on the server: its input, its output and its end.
 * It survives lost connections, and every byte arrives once. A failure is no
 * more than a reason to copy file by file.
 */
#pragma once

#include "copy.h"

#define SMALL_BYTES	TRANSFER_BLOCK /* a larger file is worth its requests */
#define WORTH_FILES	32	       /* so many are worth a process there */
#define TAR_WORDS_MAX	1024 /* bytes of what it says on standard error */
#define TAR_OPTIONS_MAX 14

struct tar_process {
	struct copy *copy;
	/* Takes what it writes. */
	void (*output)(void *arg, const void *data, size_t len);
	void *arg;
	struct buf out; /* what is sent to it next */

	/* private */
	struct execd_process *process;
	unsigned int writes; /* under way */
	bool started, broken, over;
	int code;
	char words[TAR_WORDS_MAX];
	size_t nwords;
};

void tar_process_init(struct tar_process *t, struct copy *c,
    void (*output)(void *arg, const void *data, size_t len), void *arg);
/* Kills it if it still runs, and waits for that, so that it changes nothing any
 * more. */
void tar_process_clear(struct tar_process *t);

/* Starts tar with these options, which NULL ends, in that directory there, and
 * waits until the server has started it or refused. In the script that it
 * begins with, `first` comes before tar. */
void tar_process_start(struct tar_process *t, const char *directory,
    const char *first, const char *const *options);
/* Tells whether it can still succeed. */
bool tar_process_goes_on(const struct tar_process *t);
/* Sends whole pieces of t->out. It waits while many are under way. */
void tar_process_send(struct tar_process *t);
/* Sends all of it. */
void tar_process_flush(struct tar_process *t);
/* Sends what is left, ends its input, and waits for its end. Returns true if it
 * succeeded. */
bool tar_process_end(struct tar_process *t);

/* It cannot be used any more, for this reason. */
void tar_process_break(struct tar_process *t, const char *why);
/* Returns why it failed. */
const char *tar_process_why(struct tar_process *t);
