/* SPDX-License-Identifier: ISC */
/*
 * Starts and watches the front-end's helpers.
 */
#include "base.h"
#include "frontend_child.h"

#include <sys/random.h>

#include "broker_state.h"
#include "cert_verdict.h"
#include "conf.h"
#include "seqpacket.h"
#include "spawn_client.h"

/* if it ended sooner than this after its start */
#define RESTART_AFTER_MS      1000
#define CERT_VERDICT_SLACK_MS 1000 /* because a timer may be late */

static const char *const names[] = { [TLS_HELPER_KEYS] = "key process",
	[TLS_HELPER_CERTIFICATES] = "certificate process" };

void
helpers_init(struct helpers *h)
{
	*h = (struct helpers){ .restart_ms = 0 };
	TAILQ_INIT(&h->all);
}

static bool
is_needed(const struct listener *l, enum tls_helper kind)
{
	return kind == TLS_HELPER_KEYS ? listener_has_tls(l)
				       : l->client_ca_fd >= 0;
}

static bool
any_needs(const struct conf *c, enum tls_helper kind)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (is_needed(c->listeners[i], kind))
			return true;
	return false;
}

static int
tell(int fd, enum control_type type, const void *payload, const int *fds,
    size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(fd, b.data, b.len, fds, nfds);
	explicit_bzero(b.data, b.len);
	buf_clear(&b);
	return err;
}

static int
hand_over_one(const struct listener *l, enum tls_helper kind, int fd)
{
	const int trusted[] = { l->client_ca_fd, l->client_crl_fd };
	struct control_trust trust = { .listener = l->id,
		.crl = l->client_crl_fd >= 0 };
	struct control_key key = { .key = l->id };

	if (kind == TLS_HELPER_KEYS)
		return tell(fd, KEYS_CONFIGURE, &key, &l->key_fd, 1);
	return tell(fd, KEYS_TRUST, &trust, trusted, trust.crl ? 2 : 1);
}

/* Configures the helper on its channel, before the front-end gets this
 * channel. */
static int
hand_over(const struct conf *c, const struct helper_process *p, int fd)
{
	struct control_serve serve;
	int err = 0;

	for (size_t i = 0; i < c->nlisteners && err == 0; i++)
		if (is_needed(c->listeners[i], p->kind))
			err = hand_over_one(c->listeners[i], p->kind, fd);
	memcpy(serve.secret, p->secret, sizeof(serve.secret));
	if (err == 0)
		err = tell(fd, KEYS_SERVE, &serve, NULL, 0);
	explicit_bzero(&serve, sizeof(serve));
	return err;
}

static void
helper_free(struct helpers *h, struct helper_process *p)
{
	TAILQ_REMOVE(&h->all, p, link);
	explicit_bzero(p, sizeof(*p));
	free(p);
}

/* Returns the front-end's end of the helper's channel, or -errno. */
static int
start(struct broker *m, enum tls_helper kind)
{
	struct helper_process *p = xcalloc(1, sizeof(*p));
	int own, err;

	TAILQ_INSERT_TAIL(&m->helpers->all, p, link);
	p->kind = kind;
	p->started_ms = now_ms();
	if (getrandom(p->secret, sizeof(p->secret), 0) !=
	    (ssize_t)sizeof(p->secret))
		log_fatal("getrandom: no random bytes");
	p->pid = spawn_program(PROGRAM_OF_KEYS, NULL, &own);
	if (p->pid < 0) {
		err = (int)p->pid;
		helper_free(m->helpers, p);
		return err;
	}
	err = hand_over(m->conf, p, own);
	if (err == 0)
		return own;
	close(own);
	return err;
}

static void
replace_all(struct helpers *h)
{
	struct helper_process *p;

	TAILQ_FOREACH (p, &h->all, link)
		if (p->replaced_ms == 0)
			p->replaced_ms = now_ms();
}

void
helpers_start(struct broker *m, int fds[TLS_HELPERS])
{
	m->helpers->restart_ms = 0;
	replace_all(m->helpers);
	for (int i = 0; i < TLS_HELPERS; i++) {
		fds[i] = -1;
		if (!any_needs(m->conf, i))
			continue;
		fds[i] = start(m, i);
		if (fds[i] >= 0)
			continue;
		log_error(fds[i], "starting the %s", names[i]);
		fds[i] = -1;
	}
}

void
helpers_kill(struct helpers *h, enum tls_helper kind)
{
	struct helper_process *p;

	TAILQ_FOREACH (p, &h->all, link) {
		if (p->kind != kind || p->replaced_ms > 0)
			continue;
		log_error(0, "%s %d: does not answer: killing it", names[kind],
		    (int)p->pid);
		p->killed = true;
		spawn_kill(p->pid);
	}
}

bool
helpers_are_ending(const struct helpers *h)
{
	const struct helper_process *p;

	TAILQ_FOREACH (p, &h->all, link)
		if (p->killed && p->replaced_ms == 0)
			return true;
	return false;
}

static struct helper_process *
find_helper(const struct helpers *h, pid_t pid)
{
	struct helper_process *p;

	TAILQ_FOREACH (p, &h->all, link)
		if (p->pid == pid)
			return p;
	return NULL;
}

static void
note_death(struct broker *m, const struct helper_process *p, int status)
{
	int64_t now = now_ms();

	m->counts.replaced_keys++;
	log_error(0,
	    "%s %d: ended, %s %d; TLS handshakes fail until there is another",
	    names[p->kind], (int)p->pid,
	    WIFSIGNALED(status) ? "signal" : "status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	/* A helper ends itself after a request that our front-end never
	 * sends. */
	if (WIFEXITED(status) && m->frontend->pid > 0) {
		spawn_kill(m->frontend->pid);
		return;
	}
	m->helpers->restart_ms = now - p->started_ms < RESTART_AFTER_MS
				     ? now + RESTART_AFTER_MS
				     : now;
}

bool
helpers_reap(struct broker *m, pid_t pid, int status)
{
	struct helper_process *p = find_helper(m->helpers, pid);

	if (p == NULL)
		return false;
	/* Its channel also ends when the front-end ends. */
	if (p->replaced_ms == 0 && !m->stopping &&
	    !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		note_death(m, p, status);
	helper_free(m->helpers, p);
	return true;
}

/* A handshake that began before a reload may finish with the helpers of
 * before. */
static bool
still_counts(const struct helper_process *p, int64_t now, int64_t deadline_ms)
{
	return p->replaced_ms == 0 || now - p->replaced_ms <= deadline_ms;
}

bool
helpers_vouch(const struct broker *m, uint32_t listener,
    const struct control_cert_verdict *v)
{
	int64_t deadline_ms =
	    (int64_t)m->conf->limits.frontend.pre_auth_deadline_ms +
	    CERT_VERDICT_SLACK_MS;
	int64_t now = now_ms(), made = (int64_t)v->made_ms;
	const struct helper_process *p;

	if (v->listener != listener || made > now || now - made > deadline_ms)
		return false;
	TAILQ_FOREACH (p, &m->helpers->all, link)
		if (p->kind == TLS_HELPER_CERTIFICATES &&
		    still_counts(p, now, deadline_ms) &&
		    cert_verdict_is_sealed(v, p->secret))
			return true;
	return false;
}
