/*
 * What the session's commands are, told to the monitor.
 */
#include "audit.h"

#include <string.h>
#include <sys/wait.h>

#include "buf.h"
#include "control.h"
#include "session.h"
#include "util.h"

/* Of a longer text its beginning; an id may hold any byte but NUL here. */
static void
copy_text(char *to, size_t cap, const char *from, size_t len)
{
	size_t n = strnlen(from, len);

	if (n >= cap)
		n = cap - 1;
	memcpy(to, from, n);
	to[n] = '\0';
}

static bool
is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	return *word != '\0' && word[strspn(word, plain)] == '\0';
}

/* As a shell would read it again. */
static void
put_word(struct buf *b, const char *word)
{
	if (is_plain(word)) {
		buf_puts(b, word);
		return;
	}
	buf_puts(b, "'");
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			buf_puts(b, "'\\''");
		else
			buf_put(b, word, 1);
	}
	buf_puts(b, "'");
}

/* True: it does not fit, and what fits is there. */
static bool
put_command(char *to, size_t cap, char *const argv[])
{
	struct buf b;
	bool cut;

	buf_init(&b, cap - 1);
	for (size_t i = 0; argv[i] != NULL && !b.failed; i++) {
		if (i > 0)
			buf_puts(&b, " ");
		put_word(&b, argv[i]);
	}
	cut = b.failed;
	if (b.len > 0)
		memcpy(to, b.data, b.len);
	to[b.len] = '\0';
	buf_clear(&b);
	return cut;
}

void
audit_started(const struct session *s, const struct session_process *p,
    char *const argv[], const char *cwd)
{
	struct control_started started = {
		.pid = (uint32_t)p->process.pid,
		.sandboxed = p->process.sandboxed,
		.tty = p->process.tty,
	};

	if (!s->config.audit)
		return;
	copy_text(started.process, sizeof(started.process), p->id, p->id_len);
	copy_text(started.cwd, sizeof(started.cwd), cwd, strlen(cwd));
	started.command_cut =
	    put_command(started.command, sizeof(started.command), argv);
	s->report(RUNNER_REPORT_STARTED, &started);
}

void
audit_exited(const struct session *s, const struct session_process *p)
{
	int status = p->process.wait_status;
	struct control_exited exited = {
		.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0,
		.code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0,
		.terminated = p->process.terminated,
		.denied = p->process.state.sandbox_denied,
	};

	if (!s->config.audit)
		return;
	copy_text(exited.process, sizeof(exited.process), p->id, p->id_len);
	s->report(RUNNER_REPORT_EXITED, &exited);
}
