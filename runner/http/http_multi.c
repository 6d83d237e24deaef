/* SPDX-License-Identifier: ISC */
/*
 * Connects curl's multi interface with libevent. curl says which sockets and
 * which deadline it waits for; the event loop says when they are ready
 * (libcurl-multi(3), curl_multi_socket_action(3)).
 */
#include <errno.h>
#include <event2/event.h>

#include "http_exchange.h"
#include "log.h"
#include "loop.h"

static struct event_base *base;
static CURLM *multi;
static struct event timer;

/*
 * Takes the transfers that have ended, one at a time, because handling one may
 * remove others.
 */
static void
take_done(void)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left)) != NULL) {
		struct exchange *x = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
		exchange_done(x, m->data.result);
	}
}

/*
 * If curl cannot go on, the program ends; otherwise a transfer would be waited
 * for for ever.
 */
static void
go_on(curl_socket_t fd, int action)
{
	int running;
	CURLMcode code = curl_multi_socket_action(multi, fd, action, &running);

	if (code != CURLM_OK)
		log_fatal("curl: %s", curl_multi_strerror(code));
	take_done();
}

static void
socket_cb(evutil_socket_t fd, short what, void *arg)
{
	go_on(fd, (what & EV_READ ? CURL_CSELECT_IN : 0) |
		      (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	go_on(CURL_SOCKET_TIMEOUT, 0);
}

/* Each socket has one event; curl keeps the pointer to it. */
static int
watch_socket(
    CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct event *event = socket_arg;
	short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
			       (what & CURL_POLL_OUT ? EV_WRITE : 0));

	if (event != NULL)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		event = event_new(
		    base, fd, (short)(wanted | EV_PERSIST), socket_cb, NULL);
		if (event == NULL)
			log_fatal("no event for a socket");
		loop_add(event, NULL);
	}
	curl_multi_assign(multi, fd, event);
	return 0;
}

static int
watch_timer(CURLM *m, long ms, void *arg)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (ms < 0)
		event_del(&timer);
	else
		loop_add(&timer, &tv);
	return 0;
}

void
multi_init(struct event_base *event_base)
{
	base = event_base;
	multi = curl_multi_init();
	if (multi == NULL)
		log_fatal("curl: no multi handle");
	event_assign(&timer, base, -1, 0, timer_cb, NULL);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, watch_timer);
}

int
multi_add(struct exchange *x)
{
	return curl_multi_add_handle(multi, x->easy) == CURLM_OK ? 0 : -EIO;
}

void
multi_remove(struct exchange *x)
{
	curl_multi_remove_handle(multi, x->easy);
}
