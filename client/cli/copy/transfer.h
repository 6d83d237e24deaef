/* SPDX-License-Identifier: ISC */
/*
 * Transfers one file in blocks, with several blocks under way. A lost
 * connection also closes the server's file handle, and a server can lose a
 * handle alone: its process for files ended. A download then continues where it
 * stopped. An upload does so if at least one block had arrived and appending
 * works, and else begins again.
 */
#pragma once

#include "execctl.h"

#define TRANSFER_BLOCK	  (1u << 20) /* bytes, the protocol's limit */
#define TRANSFER_WINDOW	  6	     /* blocks under way */
#define TRANSFER_ATTEMPTS 20	     /* attempts without any progress */

/* What both directions have. */
struct transfer {
	struct execctl *ctl;
	char *path; /* on the server; owned, absolute */
	/* The last callback; it may free the transfer. code is 0 for a complete
	 * file, the -errno of write or read, or the server's code with its
	 * message. */
	void (*done)(void *arg, int code, const char *message);
	void *arg; /* of all callbacks */

	/* private */
	char handle[32];
	unsigned int waiting; /* requests without an answer yet */
	unsigned int attempts;
	bool lost, closing, ended;
	int code;
	char *message;
	char *why; /* owned: how the server lost the handle last; NULL */
};

/* A transfer from the server. */
struct download {
	struct transfer t;
	/* Takes the next bytes. Returns 0 or -errno. */
	int (*write)(void *arg, const void *data, size_t len);
	/* Tells whether more may be requested. NULL: always. */
	bool (*ready)(void *arg);

	/* private */
	uint64_t asked, got; /* offsets: next request, bytes received */
	bool eof;
	bool identified; /* size and time are known */
	int64_t size, modified_ms;
};

void download_start(struct download *d);
/* Must be called after ready() became true. */
void download_update(struct download *d);
/* Requests no more blocks. done() will get this code and message. */
void download_fail(struct download *d, int code, const char *message);
void download_clear(struct download *d);

/* A transfer to the server. */
struct upload {
	struct transfer t;
	uint64_t size; /* bytes it will have */
	/* Reads len bytes at offset. Returns 0 or -errno; -ENODATA: the file is
	 * shorter. */
	int (*read)(void *arg, uint64_t offset, void *data, size_t len);
	/* Returns the offset of the next byte outside a hole. May be NULL. */
	uint64_t (*next_data)(void *arg, uint64_t offset);
	/* Reports how many bytes were sent. The number may decrease. May be
	 * NULL. */
	void (*progress)(void *arg, uint64_t offset);

	/* private */
	uint64_t sent, acknowledged;
	uint64_t ends[TRANSFER_WINDOW]; /* of blocks under way, a ring */
	unsigned int blocks_sent, blocks_answered;
	bool no_append; /* appending failed before */
	uint8_t *block; /* owned, TRANSFER_BLOCK bytes; or NULL */
};

void upload_start(struct upload *u);
void upload_clear(struct upload *u);

/* Makes a handle name that this program has not used before. */
void transfer_handle(char handle[32]);
