/* SPDX-License-Identifier: ISC */
/*
 * execctl run on several servers: one execctl for each, a few at a time. Their
 * output comes by lines, with the name of the server before each. This one
 * connects to nobody: what a server sends cannot disturb the others.
 */
#include "base.h"
#include "cmd.h"

#define PARALLEL       8
#define PARALLEL_MAX   32	  /* two sources of the loop for each */
#define LINE_MAX_BYTES (4u << 20) /* longer lines are broken */

struct many;

struct stream_of {
	struct child *child;
	struct source source; /* fd -1: closed */
	FILE *to;
	struct buf text; /* of a line that has not ended yet */
};

struct child {
	struct many *many;
	char *name; /* of the environment; owned */
	pid_t pid;  /* 0: it does not run */
	bool started;
	int status;
	struct stream_of streams[2]; /* of its standard output and error */
};

struct many {
	struct execctl *ctl;
	struct child *children;
	size_t n, next, running, parallel;
	int signal; /* that ends all; 0: none */
	struct source signals;
};

/* --- Output ------------------------------------------------------------- */

/* A line of JSON is an object, and gets the name as its first member. */
static void
put_line(const struct stream_of *s, const char *line, size_t len)
{
	const struct execctl *ctl = s->child->many->ctl;
	struct json_text t;

	object_begin(&t);
	if (ctl->json && s->to == stdout && len > 0 && line[0] == '{') {
		json_key_cstring(&t.w, "environment", s->child->name);
		line++;
		len--;
		buf_puts(&t.buf, ",");
	} else {
		buf_clear(&t.buf);
		buf_init(&t.buf, SIZE_MAX);
		buf_printf(&t.buf, "%s: ", s->child->name);
	}
	buf_put(&t.buf, line, len);
	buf_puts(&t.buf, "\n");
	fwrite(t.buf.data, 1, t.buf.len, s->to);
	buf_clear(&t.buf);
}

static void
put_lines(struct stream_of *s, bool all)
{
	const char *text = (const char *)s->text.data, *end;
	size_t at = 0, left;

	while ((left = s->text.len - at) > 0) {
		end = memchr(text + at, '\n', left);
		if (end == NULL && !all && left < LINE_MAX_BYTES)
			break;
		put_line(s, text + at,
		    end != NULL ? (size_t)(end - text) - at : left);
		at = end != NULL ? (size_t)(end - text) + 1 : s->text.len;
	}
	buf_consume(&s->text, at);
	fflush(s->to);
}

static void end_all(struct many *m, int sig);

/* Returns false if there is nothing more, now or at all. */
static bool
read_some(struct stream_of *s)
{
	uint8_t *room = buf_reserve(&s->text, 65536);
	ssize_t n = read(s->source.fd, room, 65536);

	if (n > 0)
		buf_commit(&s->text, (size_t)n);
	put_lines(s, n == 0);
	if (ferror(stdout))
		end_all(s->child->many, SIGTERM); /* nobody reads it */
	if (n == 0)
		s->source.events = 0;
	return n > 0;
}

static void
stream_ready(void *arg)
{
	read_some(arg);
}

/* --- Children ----------------------------------------------------------- */

/* Executes execctl with the options of this one, for one environment. */
static void
become(const struct parsed *p, const char *name)
{
	size_t n = 0;
	const char **argv =
	    xcalloc(p->ngiven + (size_t)p->narguments + 6, sizeof(*argv));

	argv[n++] = "execctl";
	argv[n++] = p->command->name;
	for (size_t i = 0; i < p->ngiven; i++) {
		const struct given *g = &p->given[i];

		if (strcmp(g->row->name, "environment") != 0 &&
		    strcmp(g->row->name, "parallel") != 0)
			argv[n++] = xasprintf("--%s%s%s", g->row->name,
			    g->row->value ? "=" : "", g->value);
	}
	argv[n++] = xasprintf("--environment=%s", name);
	argv[n++] = "--no-stdin";
	argv[n++] = "--";
	for (int i = 0; i < p->narguments; i++)
		argv[n++] = p->arguments[i];
	execv("/proc/self/exe", (char **)(uintptr_t)argv);
}

/* It has no terminal: a ^C there reaches it once, from its parent. It does not
 * outlive that. */
static void __attribute__((noreturn))
child_main(const struct child *c, pid_t parent, int out, int err)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(nothing, STDIN_FILENO) >= 0 &&
	    dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		become(c->many->ctl->parsed, c->name);
	_exit(EXIT_CTL_REFUSED);
}

static void
watch_stream(struct child *c, size_t i, int fd)
{
	struct stream_of *s = &c->streams[i];

	*s = (struct stream_of){ .child = c,
		.to = i == 0 ? stdout : stderr,
		.source = { .ready = stream_ready, .arg = s } };
	buf_init(&s->text, SIZE_MAX);
	set_nonblock(fd);
	source_set(c->many->ctl, &s->source, fd, POLLIN);
}

static int
start(struct child *c)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	pid_t parent = getpid();

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
	    (c->pid = fork()) < 0) {
		c->pid = 0;
		return -errno;
	}
	if (c->pid == 0)
		child_main(c, parent, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	watch_stream(c, 0, out[0]);
	watch_stream(c, 1, err[0]);
	c->started = true;
	c->many->running++;
	return 0;
}

/* What it has started may hold its pipes for ever, so they are read no longer
 * than there is something. */
static void
ended(struct child *c, int status)
{
	c->pid = 0;
	c->status =
	    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	c->many->running--;
	for (size_t i = 0; i < nitems(c->streams); i++) {
		struct stream_of *s = &c->streams[i];

		while (read_some(s))
			continue;
		put_lines(s, true);
		source_remove(c->many->ctl, &s->source);
		close(s->source.fd);
		buf_clear(&s->text);
	}
}

static void
end_all(struct many *m, int sig)
{
	m->signal = sig;
	for (size_t i = 0; i < m->n; i++)
		if (m->children[i].pid > 0)
			kill(m->children[i].pid, sig);
}

static void
signal_came(void *arg)
{
	struct many *m = arg;
	int status, sig = signals_take(&m->signals);

	if (sig != 0 && sig != SIGCHLD)
		end_all(m, sig);
	for (size_t i = 0; i < m->n; i++)
		if (m->children[i].pid > 0 &&
		    waitpid(m->children[i].pid, &status, WNOHANG) > 0)
			ended(&m->children[i], status);
}

/* --- All of them -------------------------------------------------------- */

/* Every name is looked up before anything starts. */
static int
take_names(struct many *m, const char *names)
{
	_cleanup_free_ char *copy = xstrdup(names);
	char *rest = copy, *name;

	while ((name = strsep(&rest, ",")) != NULL) {
		struct execd_environment e;
		_cleanup_free_ char *error = NULL;

		if (execd_environment_find(name, &e, &error) < 0)
			return execctl_fail(
			    m->ctl, EXIT_CTL_USAGE, "%s", error);
		execd_environment_clear(&e);
		m->children =
		    xreallocarray(m->children, m->n + 1, sizeof(*m->children));
		m->children[m->n++] =
		    (struct child){ .many = m, .name = xstrdup(name) };
	}
	return 0;
}

static int
take_options(struct many *m)
{
	const struct parsed *p = m->ctl->parsed;
	const char *parallel = option(p, "parallel");
	char *end = NULL;

	m->parallel = PARALLEL;
	if (parallel != NULL)
		m->parallel = strtoul(parallel, &end, 10);
	if (m->parallel < 1 || m->parallel > PARALLEL_MAX ||
	    (end != NULL && *end != '\0'))
		return execctl_fail(m->ctl, EXIT_CTL_USAGE,
		    "--parallel: `%s' is not a number from 1 to %d", parallel,
		    PARALLEL_MAX);
	if (option(p, "environment") == NULL || option(p, "url") != NULL)
		return execctl_fail(m->ctl, EXIT_CTL_USAGE,
		    "--parallel is for the servers of --environment A,B,...");
	if (option(p, "tty") != NULL)
		return execctl_fail(m->ctl, EXIT_CTL_USAGE,
		    "--tty is for one server, and several have no terminal");
	return take_names(m, option(p, "environment"));
}

/* Tells how each has ended. Returns the largest of their statuses. */
static int
sum_up(const struct many *m)
{
	size_t good = 0;
	int worst = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct child *c = &m->children[i];
		int status = c->started ? c->status : 128 + m->signal;

		if (!c->started)
			execctl_say("%s: not started", c->name);
		else if (status != 0)
			execctl_say("%s: exit status %d", c->name, status);
		good += status == 0;
		worst = status > worst ? status : worst;
	}
	if (worst != 0 || !m->ctl->quiet)
		execctl_say("%zu of %zu ended with status 0", good, m->n);
	return worst;
}

static int
run_all(struct many *m)
{
	sigset_t set = signals_that_end();
	int code;

	sigaddset(&set, SIGCHLD);
	m->signals.ready = signal_came;
	m->signals.arg = m;
	code = signals_watch(m->ctl, &m->signals, &set);
	while (code == 0 &&
	       (m->running > 0 || (m->next < m->n && m->signal == 0))) {
		while (m->signal == 0 && m->next < m->n &&
		       m->running < m->parallel) {
			struct child *c = &m->children[m->next++];
			int err = start(c);

			if (err < 0) {
				execctl_say("%s: %s", c->name, strerror(-err));
				end_all(m, SIGTERM);
			}
		}
		if (m->running > 0)
			loop_once(m->ctl);
	}
	source_remove(m->ctl, &m->signals);
	return code != 0 ? code : sum_up(m);
}

int
run_many(struct execctl *ctl)
{
	struct many m = { .ctl = ctl };
	int code = take_options(&m);

	/* The pointers to them stay as they are from now on. */
	if (code == 0)
		code = run_all(&m);
	for (size_t i = 0; i < m.n; i++)
		free(m.children[i].name);
	free(m.children);
	return code;
}
