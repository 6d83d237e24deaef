/* SPDX-License-Identifier: ISC */
/*
 * execctl replay: plays a recording of a terminal (execd.conf(5), `record-tty')
 * on the user's own. The recording is an asciicast of version 2: a line with an
 * object, and a line for each event. It is read line by line, and nothing but
 * what was recorded is written.
 */
#include <termios.h>

#include "base.h"
#include "cmd.h"
#include "run.h"

#define LINE_BYTES_MAX (1u << 20)
#define SECONDS_MAX    1e9
#define SPEED_MAX      1000
#define DURATION_MAX   (1000ull * 3600 * 1000)
#define KEY_CTRL_C     3

const struct option_row replay_options[] = {
	{ "speed", 's', "N", "play so many times as fast (1)" },
	{ "idle-limit", 'i', "TIME", "wait at most so long for what is next" },
	{ "seek", 0, "TIME", "show what was before at once" },
	{ 0 },
};

struct replay {
	const struct execctl *ctl;
	const char *path;
	FILE *in;
	char *line; /* owned */
	size_t number;
	double speed, idle_s, seek_s;
	double at_s;  /* the event that was shown last */
	bool listens; /* to keys */
	bool paused, over;
	int code;
};

static volatile sig_atomic_t ended;

static void
on_signal(int number)
{
	ended = number;
}

/* Refuses a line. Returns false. */
static bool
refuse(struct replay *r, size_t column, const char *why)
{
	r->code = execctl_fail(r->ctl, EXIT_CTL_REFUSED, "%s:%zu:%zu: %s",
	    r->path, r->number, column, why);
	return false;
}

/* --- lines ---------------------------------------------------------------- */

/* The parser knows one line only. Its error ends with the place in it. */
static bool
refuse_json(struct replay *r, struct json_doc *doc)
{
	static const char mark[] = " at line 1 column ";
	char *where = strstr(doc->error, mark);
	size_t column = 1;

	if (where != NULL) {
		column = strtoul(where + sizeof(mark) - 1, NULL, 10);
		*where = '\0';
	}
	refuse(r, column, doc->error);
	json_clear(doc);
	return false;
}

/* Parses the next line, which the caller clears. Returns false at the end, or
 * with r->code if there is no such line. */
static bool
next_line(struct replay *r, struct json_doc *doc)
{
	size_t len;

	r->number++;
	if (fgets(r->line, LINE_BYTES_MAX, r->in) == NULL)
		return ferror(r->in) && !ended ? refuse(r, 1, strerror(errno))
					       : false;
	len = strlen(r->line);
	if (len > 0 && r->line[len - 1] == '\n')
		len--;
	else if (len == LINE_BYTES_MAX - 1)
		return refuse(r, len, "the line is longer than 1 MiB");
	return json_parse(doc, r->line, len) == 0 || refuse_json(r, doc);
}

static bool
read_head(struct replay *r)
{
	const struct json_value *version;
	struct json_doc doc;
	uint64_t number = 0;
	bool ok;

	if (!next_line(r, &doc))
		return r->code == 0 ? refuse(r, 1, "the file is empty") : false;
	version = doc.root->type == JSON_OBJECT ? json_get(doc.root, "version")
						: NULL;
	ok = version != NULL && json_to_u64(version, &number) == 0 &&
	     number == 2;
	json_clear(&doc);
	return ok || refuse(r, 1,
			 version == NULL ? "no asciicast: an object with "
					   "`version` is expected"
					 : "only version 2 of asciicast is "
					   "known");
}

/* Finds the parts of an event: [seconds, "o", "text"]. */
static bool
take_event(struct replay *r, const struct json_value *event, double *at_s,
    const struct json_value **code, const struct json_value **text)
{
	const struct json_value *at = event->first;
	char number[64];
	char *end;

	if (event->type != JSON_ARRAY || event->count != 3 ||
	    at->type != JSON_NUMBER || at->next->type != JSON_STRING ||
	    at->next->next->type != JSON_STRING ||
	    at->text.len >= sizeof(number))
		return refuse(
		    r, 1, "an event is an array of a number and two strings");
	memcpy(number, at->text.ptr, at->text.len);
	number[at->text.len] = '\0';
	*at_s = strtod(number, &end);
	if (*end != '\0' || !(*at_s >= 0 && *at_s <= SECONDS_MAX))
		return refuse(r, 2, "no time of an event");
	*code = at->next;
	*text = at->next->next;
	return true;
}

/* --- time ----------------------------------------------------------------- */

/* What comes in one piece with other bytes is no key, but an answer of the
 * terminal to something that was recorded. */
static void
take_key(struct replay *r)
{
	char keys[256];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0)
		r->listens = false;
	if (n == 1 && (keys[0] == 'q' || keys[0] == KEY_CTRL_C))
		r->over = true;
	if (n == 1 && keys[0] == ' ')
		r->paused = !r->paused;
}

/* Waits for so long, not counting pauses. A signal comes only while it polls,
 * so none is missed before that. */
static void
wait_for(struct replay *r, double seconds)
{
	int64_t left = (int64_t)(seconds * 1000), begun;
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	sigset_t set = signals_that_end(), before;

	sigprocmask(SIG_BLOCK, &set, &before);
	while (!r->over && !ended && (left > 0 || r->paused)) {
		const struct timespec most = { left / 1000,
			left % 1000 * 1000000 };
		int ready;

		begun = now_ms();
		ready =
		    ppoll(&p, r->listens, r->paused ? NULL : &most, &before);
		if (!r->paused)
			left -= now_ms() - begun;
		if (ready > 0)
			take_key(r);
		r->paused &= r->listens;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Returns for how long the event is waited for. */
static double
pause_before(const struct replay *r, double at_s)
{
	double from = r->at_s > r->seek_s ? r->at_s : r->seek_s;
	double wait = at_s > from ? at_s - from : 0;

	return (wait < r->idle_s ? wait : r->idle_s) / r->speed;
}

/* --- playing -------------------------------------------------------------- */

static bool
put(struct replay *r, struct slice text)
{
	while (text.len > 0 && !ended) {
		ssize_t n = write(STDOUT_FILENO, text.ptr, text.len);

		if (n < 0 && errno != EINTR) {
			r->code = execctl_fail(r->ctl, EXIT_CTL_REFUSED,
			    "standard output: %s", strerror(errno));
			return false;
		}
		if (n > 0)
			text = (struct slice){ text.ptr + n,
				text.len - (size_t)n };
	}
	return true;
}

/* Shows the next event. Returns false at the end. */
static bool
play_one(struct replay *r)
{
	const struct json_value *code, *text;
	struct json_doc doc;
	double at_s;
	bool ok;

	if (r->over || ended || !next_line(r, &doc))
		return false;
	ok = take_event(r, doc.root, &at_s, &code, &text);
	if (ok)
		wait_for(r, pause_before(r, at_s));
	/* What was typed, sizes and marks are not shown. */
	if (ok && json_is(code, "o") && !r->over)
		ok = put(r, text->text);
	if (ok && at_s > r->at_s)
		r->at_s = at_s;
	json_clear(&doc);
	return ok;
}

static void
play(struct replay *r)
{
	const struct sigaction act = { .sa_handler = on_signal };
	bool raw;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	raw = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	      terminal_raw() == 0;
	r->listens = raw;
	while (play_one(r))
		continue;
	/* What the terminal has answered is not for the shell. */
	if (raw && tcdrain(STDOUT_FILENO) == 0)
		tcflush(STDIN_FILENO, TCIFLUSH);
	terminal_restore();
}

/* Returns 0, or the exit status after a message. */
static int
take_options(struct execctl *ctl, struct replay *r)
{
	const char *speed = option(ctl->parsed, "speed");
	uint64_t idle_ms = DURATION_MAX, seek_ms = 0;
	char *end;
	int code;

	if (speed != NULL) {
		r->speed = strtod(speed, &end);
		if (end == speed || *end != '\0' ||
		    !(r->speed >= 0.01 && r->speed <= SPEED_MAX))
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "--speed %s: a number from 0.01 to %d is expected",
			    speed, SPEED_MAX);
	}
	code = take_duration(ctl, "idle-limit", DURATION_MAX, &idle_ms);
	if (code == 0)
		code = take_duration(ctl, "seek", DURATION_MAX, &seek_ms);
	r->idle_s = (double)idle_ms / 1000;
	r->seek_s = (double)seek_ms / 1000;
	return code;
}

int
cmd_replay(struct execctl *ctl)
{
	struct replay r = {
		.ctl = ctl, .path = ctl->parsed->arguments[0], .speed = 1
	};
	int code = take_options(ctl, &r);

	if (code != 0)
		return code;
	r.in = fopen(r.path, "re");
	if (r.in == NULL)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "%s: %s", r.path, strerror(errno));
	r.line = xmalloc(LINE_BYTES_MAX);
	if (read_head(&r))
		play(&r);
	free(r.line);
	fclose(r.in);
	return r.code == 0 && ended ? 128 + ended : r.code;
}
