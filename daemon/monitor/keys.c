/*
 * The key process, started and watched.
 */
#include "keys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "drop.h"
#include "log.h"
#include "monitor.h"
#include "seqpacket.h"
#include "util.h"

#define RESTART_AFTER_MS 1000 /* if it lived shorter than this */

void
keys_init(struct keys *k)
{
	*k = (struct keys){ .pid = 0 };
	TAILQ_INIT(&k->all);
}

static bool
has_keys(const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (listener_has_tls(c->listeners[i]))
			return true;
	return false;
}

static int
tell(int fd, enum control_type type, const void *payload, int key_fd)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(fd, b.data, b.len, &key_fd, key_fd >= 0);
	buf_clear(&b);
	return err;
}

/* On the channel that will be the front-end's, before it is. */
static int
hand_over_keys(const struct conf *c, int fd)
{
	int err = 0;

	for (size_t i = 0; i < c->nlisteners && err == 0; i++) {
		const struct listener *l = c->listeners[i];
		struct control_key key = { .key = l->id };

		if (listener_has_tls(l))
			err = tell(fd, KEYS_CONFIGURE, &key, l->key_fd);
	}
	return err < 0 ? err : tell(fd, KEYS_SERVE, NULL, -1);
}

static void __attribute__((noreturn))
keys_child(const struct monitor *m, int channel_fd)
{
	char *argv[] = { (char *)(uintptr_t) "execd-keys", NULL };
	char *env[2] = { NULL };

	if (getenv("JOURNAL_STREAM") != NULL)
		env[0] = (char *)(uintptr_t) "JOURNAL_STREAM=inherited";
	child_reset_signals();
	setsid();
	if (m->root) {
		drop_bounding_set();
		drop_to_user(m->frontend_uid, m->frontend_gid, NULL, 0);
	}
	child_exec(m->programs.keys, channel_fd, argv, env);
}

int
keys_start(struct monitor *m)
{
	struct key_process *p;
	int pair[2], err;

	m->keys.pid = 0;
	m->keys.restart_ms = 0;
	if (!has_keys(m->conf))
		return -1;
	err = seqpacket_pair(pair);
	if (err < 0)
		return err;
	p = xcalloc(1, sizeof(*p));
	p->pid = fork();
	if (p->pid == 0)
		keys_child(m, pair[1]);
	close(pair[1]);
	err = p->pid < 0 ? -errno : hand_over_keys(m->conf, pair[0]);
	if (p->pid < 0) {
		free(p);
		close(pair[0]);
		return err;
	}
	TAILQ_INSERT_TAIL(&m->keys.all, p, link);
	m->keys.pid = p->pid;
	m->keys.started_ms = now_ms();
	if (err < 0)
		close(pair[0]);
	return err < 0 ? err : pair[0];
}

static struct key_process *
find(const struct keys *k, pid_t pid)
{
	struct key_process *p;

	TAILQ_FOREACH (p, &k->all, link)
		if (p->pid == pid)
			return p;
	return NULL;
}

bool
keys_has(const struct keys *k, pid_t pid)
{
	return find(k, pid) != NULL;
}

bool
keys_reap(struct monitor *m, pid_t pid, int status)
{
	struct key_process *p = find(&m->keys, pid);
	int64_t now = now_ms();

	if (p == NULL)
		return false;
	TAILQ_REMOVE(&m->keys.all, p, link);
	free(p);
	if (pid != m->keys.pid || m->stopping)
		return true;
	/* Its channel ends with the front-end's life as well. */
	m->keys.pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	log_error(0,
	    "key process %d: ended, %s %d; TLS handshakes fail until "
	    "there is another",
	    (int)pid, WIFSIGNALED(status) ? "signal" : "status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	/* It ends itself over a request that our front-end does not make. */
	if (WIFEXITED(status) && m->frontend.pid > 0) {
		kill(m->frontend.pid, SIGKILL);
		return true;
	}
	m->keys.restart_ms = now - m->keys.started_ms < RESTART_AFTER_MS
				 ? now + RESTART_AFTER_MS
				 : now;
	return true;
}
