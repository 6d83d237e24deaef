/* SPDX-License-Identifier: ISC */
/*
 * The program of an ask: URL: started, read, and ended. It is the step before
 * all others, and says where the server is. It is asked once. From then on the
 * client is one of that server, until the program ends: its lease is over then,
 * and there is nothing to resume.
 */

#include "base.h"
#include "client.h"

/* The most bytes of the line that it prints. */
#define LEASE_LINE_MAX 8192
#define END_MS	       5000 /* from the end of its input to SIGTERM */
#define TERM_MS	       2000 /* from SIGTERM to SIGKILL */
/* What a server sent before its lease ended may still be under way. */
#define LEASE_QUIET_MS 2000

/* The strings are owned; NULL if the answer does not have them. */
struct lease_answer {
	char *url;
	char *token_file;
	char *ca_file;
};

void
lease_init(struct lease *l)
{
	*l = (struct lease){ .to = -1, .from = -1, .ended = -1 };
	buf_init(&l->line, LEASE_LINE_MAX + 1);
}

static void
answer_clear(struct lease_answer *a)
{
	free(a->url);
	free(a->token_file);
	free(a->ca_file);
	*a = (struct lease_answer){ 0 };
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- The answer --------------------------------------------------------- */

static int
refuse(char **error, const char *what)
{
	*error = xasprintf("the program printed no answer: %s", what);
	return -EBADMSG;
}

/* Copies a string without NUL. *out stays NULL if there is none. */
static int
take_text(
    char **out, const struct json_value *answer, const char *key, char **error)
{
	const struct json_value *v = json_get(answer, key);
	char what[64];

	if (v == NULL)
		return 0;
	if (v->type == JSON_STRING && v->text.len > 0 &&
	    memchr(v->text.ptr, '\0', v->text.len) == NULL) {
		*out = xstrndup(v->text.ptr, v->text.len);
		return 0;
	}
	snprintf(what, sizeof(what), "`%s' is not a text", key);
	return refuse(error, what);
}

static int
check_paths(const struct lease_answer *a, char **error)
{
	if (a->url == NULL)
		return refuse(error, "there is no `url'");
	if (a->token_file != NULL && a->token_file[0] != '/')
		return refuse(error, "`tokenFile' is not an absolute path");
	if (a->ca_file != NULL && a->ca_file[0] != '/')
		return refuse(error, "`ca' is not an absolute path");
	return 0;
}

static int
parse_answer(const char *line, size_t len, struct lease_answer *a, char **error)
{
	struct json_doc doc;
	int err = json_parse(&doc, line, len);

	*a = (struct lease_answer){ 0 };
	if (err < 0)
		err = refuse(error, doc.error);
	else if (doc.root->type != JSON_OBJECT)
		err = refuse(error, "it is not a JSON object");
	else if ((err = take_text(&a->url, doc.root, "url", error)) == 0 &&
		 (err = take_text(
		      &a->token_file, doc.root, "tokenFile", error)) == 0 &&
		 (err = take_text(&a->ca_file, doc.root, "ca", error)) == 0)
		err = check_paths(a, error);
	json_clear(&doc);
	if (err < 0)
		answer_clear(a);
	return err;
}

static int
take_line(struct lease *l, struct lease_answer *a, char **error)
{
	const char *line = (const char *)l->line.data;
	const char *end =
	    l->line.len > 0 ? memchr(line, '\n', l->line.len) : NULL;

	if (l->line.failed || (end == NULL && l->line.len > LEASE_LINE_MAX)) {
		*error = xasprintf(
		    "the line that the program printed is longer than %d bytes",
		    LEASE_LINE_MAX);
		return -EBADMSG;
	}
	if (end == NULL)
		return -EAGAIN;
	if (end + 1 != line + l->line.len)
		return refuse(error, "there is more than one line");
	return parse_answer(line, (size_t)(end - line), a, error);
}

static char *
describe(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return xasprintf("ended with status %d", info->si_status);
	return xasprintf("was killed by signal %d", info->si_status);
}

static bool
has_ended(const struct lease *l, char **how)
{
	struct pollfd ended = { .fd = l->ended, .events = POLLIN };
	siginfo_t info = { 0 };

	if (l->pid == 0 || poll(&ended, 1, 0) <= 0)
		return false;
	/* It stays a zombie: its number still names its process group. */
	if (waitid(P_PID, (id_t)l->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		*how = xstrdup("ended");
	else
		*how = describe(&info);
	return true;
}

static int
read_line(struct lease *l, struct lease_answer *a, char **error)
{
	_cleanup_free_ char *how = NULL;
	/* Asked before reading: what it printed before it ended is read. */
	bool ended = has_ended(l, &how);
	char data[4096];
	ssize_t n = 1;
	int err;

	while (l->from >= 0 && !l->line.failed &&
	       (n = read(l->from, data, sizeof(data))) > 0)
		buf_put(&l->line, data, (size_t)n);
	err = take_line(l, a, error);
	if (err == -EAGAIN && ended) {
		*error = xasprintf("the program %s before it answered", how);
		return -ESRCH;
	}
	/* A program that has closed its output may still be about to fail. */
	if (n == 0)
		close_fd(&l->from);
	return err;
}

/* --- The end ------------------------------------------------------------ */

void
lease_release(struct lease *l)
{
	close_fd(&l->to);
}

/* The program may not have come to setsid(2) yet. */
static void
send_signal(const struct lease *l, int signal)
{
	kill(-l->pid, signal);
	kill(l->pid, signal);
}

void
lease_end(struct lease *l)
{
	close_fd(&l->to);
	close_fd(&l->from);
	if (l->pid > 0) {
		if (!stream_wait(l->ended, END_MS)) {
			send_signal(l, SIGTERM);
			stream_wait(l->ended, TERM_MS);
		}
		send_signal(l, SIGKILL);
		while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	close_fd(&l->ended);
	buf_clear(&l->line);
	lease_init(l);
}

/* --- The link ----------------------------------------------------------- */

void
link_ask(struct execd_client *c)
{
	struct lease *l = &c->lease;
	pid_t pid = stream_start(c->endpoint.command, true, &l->to, &l->from);
	int err = pid < 0 ? (int)pid : 0;

	if (pid > 0) {
		l->pid = pid;
		l->ended = (int)syscall(SYS_pidfd_open, pid, 0);
		err = l->ended < 0 ? -errno : 0;
	}
	c->may_pass = false;
	c->deadline_ms = now_ms() + c->options.connect_timeout_ms;
	c->link = LINK_ASK;
	if (err == 0)
		return;
	lease_end(l);
	client_set_error(
	    c, "%s: start the program: %s", c->options.url, strerror(-err));
	link_failed(c, EXECD_FAILURE_UNREACHABLE);
}

/* --- Taking the answer -------------------------------------------------- */

static void
replace(const char **option, char *value)
{
	free((char *)(uintptr_t)*option);
	*option = value;
}

/* Takes the server out of the answer. Errors name its URL from here on. */
static int
use_answer(struct execd_client *c, struct lease_answer *a, char **error)
{
	char *token = NULL;
	int err = a->token_file == NULL
		      ? 0
		      : execd_token_read(a->token_file, &token, error);

	if (err < 0)
		return err;
	if (token != NULL)
		replace(&c->options.token, token);
	if (a->ca_file != NULL)
		replace(&c->options.ca_file, steal_pointer(&a->ca_file));
	replace(&c->options.url, steal_pointer(&a->url));
	endpoint_clear(&c->endpoint);
	if (client_check_server(c) < 0)
		return -EINVAL;
	if (c->endpoint.kind != ENDPOINT_ASK &&
	    c->endpoint.kind != ENDPOINT_STDIO)
		return 0;
	*error = xstrdup("the program must answer with a URL of ws://, wss:// "
			 "or unix:");
	return -EINVAL;
}

static void
answered(struct execd_client *c, struct lease_answer *a)
{
	_cleanup_free_ char *asked = xstrdup(c->options.url);
	_cleanup_free_ char *error = NULL;
	int err = use_answer(c, a, &error);

	answer_clear(a);
	if (err == 0) {
		c->link = LINK_NONE;
		c->first_ms = now_ms();
		link_begin(c);
		return;
	}
	if (error == NULL)
		error = xstrdup(execd_client_error(c));
	client_set_error(c, "%s: %s", asked, error);
	link_failed(c, EXECD_FAILURE_USAGE);
}

static void
read_answer(struct execd_client *c)
{
	_cleanup_free_ char *error = NULL;
	struct lease_answer a;
	int err = read_line(&c->lease, &a, &error);

	if (err == 0) {
		answered(c, &a);
	} else if (err != -EAGAIN) {
		client_set_error(c, "%s: %s", c->options.url, error);
		link_failed(c, err == -EBADMSG ? EXECD_FAILURE_PROTOCOL
					       : EXECD_FAILURE_UNREACHABLE);
	}
}

/* --- The lease ---------------------------------------------------------- */

bool
link_lease_is_over(const struct execd_client *c)
{
	return c->lease_over_ms != 0;
}

void
link_lease_failed(struct execd_client *c)
{
	client_set_error(c, "%s: the lease is over: the program of ask: %s",
	    c->options.url, c->lease_how);
	client_over(c, c->state == EXECD_CONNECTING ? EXECD_FAILURE_UNREACHABLE
						    : EXECD_FAILURE_LOST);
}

static void
lease_over(struct execd_client *c)
{
	c->lease_over_ms = now_ms();
	if (c->link == LINK_READY)
		return;
	link_close(c);
	link_lease_failed(c);
}

size_t
link_lease_prepare(const struct execd_client *c, struct pollfd *fds)
{
	size_t n = 0;

	if (c->lease.pid == 0 || link_lease_is_over(c))
		return 0;
	if (c->link == LINK_ASK && c->lease.from >= 0)
		fds[n++] =
		    (struct pollfd){ .fd = c->lease.from, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = c->lease.ended, .events = POLLIN };
	return n;
}

void
link_lease_events(struct execd_client *c)
{
	if (c->link == LINK_ASK)
		read_answer(c);
	else if (c->lease.pid != 0 && !link_lease_is_over(c) &&
		 has_ended(&c->lease, &c->lease_how))
		lease_over(c);
}

int64_t
link_lease_at(const struct execd_client *c)
{
	int64_t since = c->lease_over_ms;

	/* While nobody reads, silence says nothing. */
	if (since == 0 || c->link != LINK_READY || c->paused)
		return INT64_MAX;
	return (c->heard_ms > since ? c->heard_ms : since) + LEASE_QUIET_MS;
}
