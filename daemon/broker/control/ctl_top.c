/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl top' shows the sessions, those first that use the processor most.
 * In a terminal they are shown again and again until q is typed; elsewhere
 * once.
 */
#include "ctl_client.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "exit_code.h"

#define REFRESH_MS   2000
#define FAILURES_MAX 3	/* in a row: a reload replaces the broker */
#define ROWS_DEFAULT 24 /* of a terminal that does not say */
#define KEY_CTRL_C   3

/* Lines that are too long are cut by the terminal. */
#define SCREEN_BEGIN "\033[?25l\033[?7l\033[H\033[2J"
#define SCREEN_HOME  "\033[H"
#define LINE_END     "\033[K\n"
#define SCREEN_REST  "\033[J"
#define SCREEN_END   "\033[?7h\033[?25h"

struct row {
	uint64_t number, cpu_ms;
	bool known; /* cpu_ms and percent */
	double percent;
	const struct json_value *session;
};

struct snapshot {
	struct ctl_answer answer;
	struct row *rows; /* owned */
	size_t n;
	int64_t at_ms;
};

static void
snapshot_clear(struct snapshot *s)
{
	if (s->answer.line.data != NULL)
		ctl_answer_clear(&s->answer);
	free(s->rows);
	*s = (struct snapshot){ .n = 0 };
}

/* --- order ---------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

static int
by_use(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->percent != other->percent)
		return one->percent < other->percent ? 1 : -1;
	if (one->cpu_ms != other->cpu_ms)
		return one->cpu_ms < other->cpu_ms ? 1 : -1;
	return by_number(a, b);
}

/* Notes what each session has used since the snapshot before. Without one that
 * is not known. */
static void
compare(struct snapshot *now, struct snapshot *before)
{
	int64_t passed = now->at_ms - before->at_ms;

	if (before->n > 0)
		qsort(
		    before->rows, before->n, sizeof(*before->rows), by_number);
	for (size_t i = 0; i < now->n; i++) {
		struct row *r = &now->rows[i];
		const struct row *was =
		    before->n == 0 ? NULL
				   : bsearch(r, before->rows, before->n,
					 sizeof(*r), by_number);

		r->known = r->known && was != NULL && passed > 0 &&
			   r->cpu_ms >= was->cpu_ms;
		if (r->known)
			r->percent = 100 * (double)(r->cpu_ms - was->cpu_ms) /
				     (double)passed;
	}
	if (now->n > 0)
		qsort(now->rows, now->n, sizeof(*now->rows), by_use);
}

/* Returns -1 and the sessions in their order, which the caller clears, or an
 * exit code after printing the error. */
static int
take(const struct ctl_options *o, struct snapshot *s, struct snapshot *before)
{
	struct ctl_options top = { .socket = o->socket, .command = "top" };
	const struct json_value *all, *v;
	int code = ctl_ask(&top, &s->answer);

	if (code >= 0)
		return code;
	s->at_ms = now_ms();
	if (s->answer.error != NULL) {
		code = ctl_print_error(s->answer.error);
		snapshot_clear(s);
		return code;
	}
	all = json_get(s->answer.result, "sessions");
	s->rows = xcalloc(all != NULL ? all->count + 1 : 1, sizeof(*s->rows));
	for (v = all != NULL ? all->first : NULL; v != NULL; v = v->next) {
		struct row *r = &s->rows[s->n++];
		bool numbered;

		r->session = v;
		r->number = ctl_number_of(v, "number", &numbered);
		r->cpu_ms = ctl_number_of(v, "cpuMs", &r->known);
	}
	compare(s, before);
	return -1;
}

/* --- output --------------------------------------------------------------- */

static void
print_row(const struct row *r, const char *end)
{
	const struct json_value *s = r->session;

	ctl_print_column(ctl_text_of(s, "id"), 8);
	ctl_print_column(ctl_text_of(s, "number"), 6);
	ctl_print_column(ctl_text_of(s, "identity"), 12);
	ctl_print_column(ctl_text_of(s, "state"), 8);
	if (r->known)
		printf("%6.1f", r->percent);
	else
		printf("%6s", "-");
	ctl_print_cpu(s);
	ctl_print_memory(s);
	ctl_print_right(ctl_text_of(s, "processes"), 5);
	ctl_print_right(ctl_text_of(s, "commands"), 4);
	ctl_print_age(s, "ageMs");
	fputs("  ", stdout);
	ctl_print_text(stdout, ctl_text_of(s, "peer"));
	fputs(end, stdout);
}

static void
print_rows(const struct snapshot *s, size_t most, const char *end)
{
	printf("%-8s %-6s %-12s %-8s %6s %9s %8s %5s %4s %9s  %s%s", "ID",
	    "NUMBER", "IDENTITY", "STATE", "%CPU", "CPU", "MEMORY", "PROCS",
	    "CMDS", "AGE", "PEER", end);
	for (size_t i = 0; i < s->n && i < most; i++)
		print_row(&s->rows[i], end);
}

static int
print_once(const struct ctl_options *o)
{
	struct snapshot s = { .n = 0 }, none = { .n = 0 };
	int code = take(o, &s, &none);

	if (code >= 0)
		return code;
	if (o->json)
		fwrite(s.answer.line.data, 1, s.answer.line.len, stdout);
	else
		print_rows(&s, SIZE_MAX, "\n");
	snapshot_clear(&s);
	return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
}

/* --- a terminal ----------------------------------------------------------- */

static volatile sig_atomic_t ended;

static void
on_signal(int number)
{
	ended = 1;
}

static size_t
screen_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2
		   ? size.ws_row
		   : ROWS_DEFAULT;
}

static void
draw(const struct snapshot *s)
{
	size_t rows = screen_rows();

	fputs(SCREEN_HOME, stdout);
	printf("%zu sessions; q ends" LINE_END, s->n);
	/* The last line stays empty: a line end there would scroll. */
	print_rows(s, rows - 3, LINE_END);
	fputs(SCREEN_REST, stdout);
	fflush(stdout);
}

/* Waits for the next refresh. Returns false when it is to end. */
static bool
wait_for_key(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t until = now_ms() + REFRESH_MS, left;

	while (!ended && (left = until - now_ms()) > 0) {
		char key;
		int ready = poll(&p, 1, (int)left);

		if (ready > 0 && (read(STDIN_FILENO, &key, 1) != 1 ||
				     key == 'q' || key == KEY_CTRL_C))
			return false;
	}
	return !ended;
}

static int
show(const struct ctl_options *o)
{
	struct snapshot before = { .n = 0 };
	int failures = 0, code = -1;

	do {
		struct snapshot now = { .n = 0 };

		code = take(o, &now, &before);
		failures = code < 0 ? 0 : failures + 1;
		if (code >= 0)
			continue;
		draw(&now);
		snapshot_clear(&before);
		before = now;
	} while (failures < FAILURES_MAX && wait_for_key());
	snapshot_clear(&before);
	return failures > 0 ? code : EXIT_STOPPED;
}

int
ctl_top(const struct ctl_options *o)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct termios was, raw;
	int code;

	if (o->words[0] != NULL)
		return ctl_usage_error("unexpected ", o->words[0]);
	if (o->json || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &was) < 0)
		return print_once(o);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(SCREEN_BEGIN, stdout);
	code = show(o);
	fputs(SCREEN_END, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
	return code;
}
