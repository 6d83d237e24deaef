/* SPDX-License-Identifier: ISC */
/*
 * The step before all others of an ask: URL: its program says where the server
 * is. It is asked once. From then on the client is one of that server, until
 * the program ends: its lease is over then, and there is nothing to resume.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "util.h"

/* What a server sent before its lease ended may still be under way. */
#define LEASE_QUIET_MS 2000

/* Starts the program of an ask: URL. */
void
link_ask(struct execd_client *c)
{
	int err = lease_begin(&c->lease, c->endpoint.command);

	c->may_pass = false;
	c->deadline_ms = now_ms() + c->options.connect_timeout_ms;
	c->link = LINK_ASK;
	if (err == 0)
		return;
	client_set_error(
	    c, "%s: start the program: %s", c->options.url, strerror(-err));
	link_failed(c, EXECD_FAILURE_UNREACHABLE);
}

/* --- The answer --------------------------------------------------------- */

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

	lease_answer_clear(a);
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
	int err = lease_read(&c->lease, &a, &error);

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

/* Ends the client because the lease is over. */
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

/* What to poll for while there is a lease: at most 2 entries in LINK_ASK, else
 * 1. Returns the number. */
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

/* Reads the answer, or sees that the lease is over. */
void
link_lease_events(struct execd_client *c)
{
	if (c->link == LINK_ASK)
		read_answer(c);
	else if (c->lease.pid != 0 && !link_lease_is_over(c) &&
		 lease_has_ended(&c->lease, &c->lease_how))
		lease_over(c);
}

/* When the client ends behind a lease that is over; INT64_MAX: never. */
int64_t
link_lease_at(const struct execd_client *c)
{
	int64_t since = c->lease_over_ms;

	/* While nobody reads, silence says nothing. */
	if (since == 0 || c->link != LINK_READY || c->paused)
		return INT64_MAX;
	return (c->heard_ms > since ? c->heard_ms : since) + LEASE_QUIET_MS;
}
