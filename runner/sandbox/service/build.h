/* SPDX-License-Identifier: ISC */
/*
 * A short-lived process that decides about one request what sandboxes_find()
 * decides, and ends: it opens the paths that may make it wait, resolves the
 * policy, and looks for what its patterns match. It is a copy of the runner
 * with no descriptor but its own, and goes on with the request as the runner
 * would, up to the decision. It may wait for any disk, and nobody waits for it.
 */
#pragma once

#include <event2/event_struct.h>

#include "buf.h"
#include "sandboxes.h"

/* How long a file system has to answer. */
#define BUILD_WAIT_SECONDS 10

/* How often a request is decided anew, because the disk was another by then. */
#define BUILD_TRIES 6

struct build;

/* Who needs it. */
struct build_user {
	/* In the process: goes on with the request. It does not return if there
	 * is something to decide. */
	void (*go_on)(struct build *b);
	/*
	 * The end of it, which may free *b; the verdict is the callee's for
	 * that time. v->err is -ETIMEDOUT if the file system of build_path()
	 * does not answer, and -EIO if the process ended there. NULL: nothing
	 * was to decide.
	 */
	void (*done)(struct build *b, struct sandbox_verdict *v);
};

struct build {
	const struct build_user *user; /* NULL: none is under way */
	struct reaper_watch child;
	struct event in_event, deadline;
	int fd;
	char *const *paths;    /* not owned; NULL: none may make it wait */
	size_t npaths, at;     /* so many are being opened, or are */
	unsigned looks, stuck; /* at a search that goes on, or does not */
	uint64_t switches;     /* how often it had run by the last look */
	struct buf text; /* a byte for each path, and one more; the verdict */
};

/* Begins; *b must be zero, or have ended. paths must live as long. */
void build_begin(struct build *b, const struct build_user *user,
    struct sandboxes *sb, char *const *paths);

/* Ends it, without a word. It may have ended. */
void build_stop(struct build *b);

static inline bool
build_is_under_way(const struct build *b)
{
	return b->user != NULL;
}

/* The path that is being opened. */
const char *build_path(const struct build *b);
