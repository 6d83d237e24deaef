/* SPDX-License-Identifier: ISC */
/*
 * One file on its way, in blocks, several of them under way. A lost
 * connection takes the server's file handle with it: the transfer begins
 * again where it was.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "ctl.h"

#define TRANSFER_BLOCK	  (1u << 20) /* bytes, the protocol's limit */
#define TRANSFER_WINDOW	  6	     /* blocks under way */
#define TRANSFER_ATTEMPTS 20	     /* lost connections without a byte */

/* From the server. */
struct download {
	struct ctl *ctl;
	char *path; /* owned, absolute */
	/* Takes bytes, in order. 0 or -errno. */
	int (*write)(void *arg, const void *data, size_t len);
	/* May more be asked for? NULL: always. */
	bool (*ready)(void *arg);
	/* The last call. code 0: complete; -errno of write; else a code of
	 * the server's with its message. The download may be freed in it. */
	void (*done)(void *arg, int code, const char *message);
	void *arg;

	/* private */
	char handle[32];
	uint64_t asked, got;  /* offsets: of the next request, of what came */
	unsigned int waiting; /* answers */
	unsigned int attempts;
	unsigned int generation; /* of the handle; answers know theirs */
	bool eof, lost, closing, ended;
	bool identified; /* size and time are known */
	int64_t size, modified_ms;
	int code;
	char *message;
};

void download_start(struct download *d);
/* After ready() became true. */
void download_update(struct download *d);
/* No further block is asked for; done() comes with this. */
void download_fail(struct download *d, int code, const char *message);
void download_clear(struct download *d);

/* To the server. */
struct upload {
	struct ctl *ctl;
	char *path;    /* owned, absolute */
	uint64_t size; /* bytes that it will have */
	/* So many bytes at offset. 0 or -errno (-ENODATA: there is less). */
	int (*read)(void *arg, uint64_t offset, void *data, size_t len);
	/* Where the next byte that is not in a hole is. May be NULL. */
	uint64_t (*next_data)(void *arg, uint64_t offset);
	/* So many bytes are there; may go back. May be NULL. */
	void (*progress)(void *arg, uint64_t offset);
	void (*done)(void *arg, int code, const char *message);
	void *arg;

	/* private */
	char handle[32];
	uint64_t sent, acknowledged;
	uint64_t ends[TRANSFER_WINDOW]; /* of blocks under way, a ring */
	unsigned int blocks_sent, blocks_answered;
	unsigned int waiting;
	unsigned int attempts;
	bool opened, closing, lost, ended;
	bool no_append; /* it did not work */
	struct execd_process *append;
	unsigned int append_writes;
	int append_code;
	uint8_t *block; /* owned, TRANSFER_BLOCK bytes; NULL: not needed yet */
	int code;
	char *message;
};

void upload_start(struct upload *u);
void upload_clear(struct upload *u);

/* upload_append.c: the rest of a file, by a command on the server, because no
 * file method opens a file without emptying it. Calls upload_appended(). */
void upload_append(struct upload *u);
void upload_appended(struct upload *u, bool worked);

/* A name for a handle that this program has not used. */
void transfer_handle(char handle[32]);

#endif
