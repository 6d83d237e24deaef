/* SPDX-License-Identifier: ISC */
/*
 * The program of an ask: URL: started, read, and ended.
 */
#include "lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "stream.h"
#include "util.h"

#define END_MS	5000 /* from the end of its input to SIGTERM */
#define TERM_MS 2000 /* from SIGTERM to SIGKILL */

void
lease_init(struct lease *l)
{
	*l = (struct lease){ .to = -1, .from = -1, .ended = -1 };
	buf_init(&l->line, LEASE_LINE_MAX + 1);
}

void
lease_answer_clear(struct lease_answer *a)
{
	free(a->url);
	free(a->token_file);
	free(a->ca_file);
	*a = (struct lease_answer){ 0 };
}

/* --- The start ---------------------------------------------------------- */

/* Runs in the child after fork(2), so it calls only async-signal-safe
 * functions. A session of its own keeps ^C of the terminal away from the
 * program and lets all of its processes be ended together. It cannot ask the
 * user for anything: a question would only look like silence. */
static void __attribute__((noreturn))
run_program(const char *command, int in, int out)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Starts it with these pipes; the caller closes `in' and `out'. */
static int
start_program(struct lease *l, const char *command, int in, int out)
{
	pid_t pid = fork();

	if (pid == 0)
		run_program(command, in, out);
	if (pid < 0)
		return -errno;
	l->pid = pid;
	l->ended = (int)syscall(SYS_pidfd_open, pid, 0);
	return l->ended < 0 ? -errno : set_nonblock(l->from);
}

int
lease_begin(struct lease *l, const char *command)
{
	int to[2], from[2], err = stream_pipes(to, from);

	if (err < 0)
		return err;
	l->to = to[1];
	l->from = from[0];
	err = start_program(l, command, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	if (err < 0)
		lease_end(l);
	return err;
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
		lease_answer_clear(a);
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

int
lease_read(struct lease *l, struct lease_answer *a, char **error)
{
	_cleanup_free_ char *how = NULL;
	/* Asked before reading: what it printed before it ended is read. */
	bool ended = lease_has_ended(l, &how);
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

static char *
describe(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return xasprintf("ended with status %d", info->si_status);
	return xasprintf("was killed by signal %d", info->si_status);
}

bool
lease_has_ended(const struct lease *l, char **how)
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

void
lease_release(struct lease *l)
{
	close_fd(&l->to);
}

static bool
has_ended_within(const struct lease *l, int timeout_ms)
{
	struct pollfd ended = { .fd = l->ended, .events = POLLIN };
	int64_t left, end = now_ms() + timeout_ms;
	int n = 0;

	while (l->ended >= 0 && n <= 0 && (left = end - now_ms()) > 0)
		n = poll(&ended, 1, (int)left);
	return n > 0;
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
		if (!has_ended_within(l, END_MS)) {
			send_signal(l, SIGTERM);
			has_ended_within(l, TERM_MS);
		}
		send_signal(l, SIGKILL);
		while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	close_fd(&l->ended);
	buf_clear(&l->line);
	lease_init(l);
}
