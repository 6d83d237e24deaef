/* SPDX-License-Identifier: ISC */
/*
 * Transfers one file in blocks, with several blocks under way. A lost
 * connection also closes the server's file handle. A download then continues
 * where it stopped. An upload does so if at least one block had arrived and
 * appending works, and else begins again.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

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
	bool opened;
	bool no_append; /* appending failed before */
	struct execd_process *append;
	unsigned int append_writes;
	int append_code;
	uint8_t *block; /* owned, TRANSFER_BLOCK bytes; or NULL */
};

void upload_start(struct upload *u);
void upload_clear(struct upload *u);

/* --- transfer.c, for download.c and upload.c ---------------------------- */

/* Makes a handle name that this program has not used before. */
void transfer_handle(char handle[32]);

/* Begins the params of a request for the transfer's handle. */
void transfer_begin(
    const struct transfer *t, struct buf *b, struct json_writer *w);

/* Opens the file under a new handle. */
void transfer_open(
    struct transfer *t, const char *mode, execd_answer_fn *fn, void *owner);

/* Ends the params, sends the request and clears b. The answer goes to
 * fn(owner). */
void transfer_ask(struct transfer *t, const char *method, struct buf *b,
    struct json_writer *w, unsigned int flags, execd_answer_fn *fn,
    void *owner);

/* Asks for the file's metadata. It may be asked again on another
 * connection. */
void transfer_identify(struct transfer *t, execd_answer_fn *fn, void *owner);

/* Asks to close the handle. */
void transfer_close(struct transfer *t, execd_answer_fn *fn, void *owner);

/* Takes the answer's error, if any. Returns true if the result must be
 * handled. */
bool transfer_take_answer(struct transfer *t, const struct execd_answer *a);

/* Notes the first failure: done() will get this code and message. */
void transfer_fail(struct transfer *t, int code, const char *message);

/* Calls done(). */
void transfer_finish(struct transfer *t);

/* Counts another attempt. Returns false after transfer_finish() if there is
 * none. */
bool transfer_try_again(struct transfer *t);

void transfer_clear(struct transfer *t);

#endif
