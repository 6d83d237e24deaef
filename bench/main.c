/* SPDX-License-Identifier: ISC */
/*
 * load: a client that measures servers of the exec-server protocol, execd's
 * and others. It is started by bench/ and trusts the server.
 */
#include "base.h"

#include <getopt.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <openssl/ssl.h>

#include "figures.h"
#include "peer.h"

#define SILENCE_MS 60000 /* a server that says nothing so long is stuck */
#define EVENTS_MAX 64

static const struct {
	const char *name;
	void (*run)(struct load *l);
} modes[] = {
	{ "connect", mode_connect },
	{ "echo", mode_echo },
	{ "files", mode_files },
	{ "output", mode_output },
	{ "processes", mode_processes },
	{ "sessions", mode_sessions },
	{ "slow", mode_slow },
	{ "spawn", mode_spawn },
	{ "stdin", mode_stdin },
};

static const struct {
	const char *name;
	size_t at;
} numbers[] = {
	{ "bytes", offsetof(struct load, bytes) },
	{ "connections", offsetof(struct load, connections) },
	{ "count", offsetof(struct load, count) },
	{ "inflight", offsetof(struct load, inflight) },
	{ "pause-ms", offsetof(struct load, pause_ms) },
	{ "size", offsetof(struct load, size) },
	{ "warmup", offsetof(struct load, warmup) },
};

static const struct {
	const char *name;
	size_t at;
} switches[] = {
	{ "controlled", offsetof(struct load, controlled) },
	{ "quickack", offsetof(struct load, quickack) },
	{ "sandbox", offsetof(struct load, sandbox) },
	{ "tty", offsetof(struct load, tty) },
	{ "writing", offsetof(struct load, writing) },
};

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: load MODE --url URL [--bytes N] [--ca FILE] "
	      "[--connections N]\n"
	      "            [--controlled] [--count N] [--inflight N] "
	      "[--path DIR]\n"
	      "            [--pause-ms N] [--quickack] [--sandbox] [--size N]\n"
	      "            [--stages N,N...] [--tty] [--warmup N] [--writing]\n"
	      "MODE is one of",
	    stderr);
	for (size_t i = 0; i < nitems(modes); i++)
		fprintf(stderr, " %s", modes[i].name);
	fputs("\n", stderr);
	exit(2);
}

uint64_t
load_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
load_moment(const struct load *l, const char *name)
{
	char line[16];

	if (!l->controlled)
		return;
	fprintf(stderr, "at %s\n", name);
	if (fgets(line, sizeof(line), stdin) == NULL)
		log_fatal("the driver is gone");
}

void
load_run(struct load *l)
{
	struct epoll_event events[EVENTS_MAX];

	l->done = false;
	while (!l->done) {
		int n = epoll_wait(l->epoll, events, EVENTS_MAX, SILENCE_MS);

		if (n < 0 && errno != EINTR)
			log_fatal_errno(-errno, "epoll_wait");
		if (n == 0)
			log_fatal(
			    "the server said nothing for %d ms", SILENCE_MS);
		for (int i = 0; i < n; i++)
			peer_serve(events[i].data.ptr, events[i].events);
	}
}

/* --- Flags -------------------------------------------------------------- */

static uint64_t
number(const char *text, char **end)
{
	unsigned long long v;

	errno = 0;
	v = strtoull(text, end, 10);
	if (errno != 0 || *end == text || *text == '-')
		log_fatal("%s is no number", text);
	return v;
}

static void
parse_stages(struct load *l, const char *text)
{
	size_t n = 0;
	char *end;

	do {
		if (n + 1 == nitems(l->stages))
			log_fatal("more than %zu stages", n);
		l->stages[n] = number(text, &end);
		if (n > 0 && l->stages[n] <= l->stages[n - 1])
			log_fatal("stages must grow: %s", text);
		n++;
		text = end + 1;
	} while (*end == ',');
	if (*end != '\0')
		log_fatal("stages are numbers with commas, not `%s`", end);
}

static bool
take_switch(struct load *l, const char *name)
{
	for (size_t i = 0; i < nitems(switches); i++)
		if (strcmp(switches[i].name, name) == 0) {
			*(bool *)((char *)l + switches[i].at) = true;
			return true;
		}
	return false;
}

static bool
take_number(struct load *l, const char *name, const char *value)
{
	char *end;

	for (size_t i = 0; i < nitems(numbers); i++) {
		if (strcmp(numbers[i].name, name) != 0)
			continue;
		*(uint64_t *)((char *)l + numbers[i].at) = number(value, &end);
		if (*end != '\0')
			log_fatal("--%s: %s is no number", name, value);
		return true;
	}
	return false;
}

static void
take_flag(struct load *l, const char *name, const char *value)
{
	if (value == NULL)
		usage();
	if (strcmp(name, "url") == 0)
		l->url = value;
	else if (strcmp(name, "ca") == 0)
		l->ca_file = value;
	else if (strcmp(name, "path") == 0)
		l->path = value;
	else if (strcmp(name, "stages") == 0)
		parse_stages(l, value);
	else if (!take_number(l, name, value))
		usage();
}

static void
parse_flags(struct load *l, char *argv[])
{
	for (; *argv != NULL; argv++) {
		const char *name = *argv + 2;

		if (strncmp(*argv, "--", 2) != 0)
			usage();
		if (take_switch(l, name))
			continue;
		take_flag(l, name, argv[1]);
		argv++;
	}
	if (l->url == NULL || l->connections == 0 || l->inflight == 0)
		usage();
}

/* --- The run ------------------------------------------------------------ */

static void
prepare(struct load *l)
{
	const char *why = NULL;
	char *error = NULL;
	struct rlimit files;

	if (endpoint_parse(&l->endpoint, l->url, &why) < 0)
		log_fatal("%s: %s", l->url, why);
	if (stream_resolve(&l->config, &l->endpoint, 10000, &error) < 0)
		log_fatal("%s", error);
	if (l->endpoint.kind == ENDPOINT_WSS) {
		if (stream_tls_config(
			&l->config, l->ca_file, NULL, NULL, &error) < 0)
			log_fatal("%s", error);
		/* One cipher on both sides of every comparison. */
		SSL_CTX_set_min_proto_version(l->config.tls, TLS1_3_VERSION);
		SSL_CTX_set_ciphersuites(
		    l->config.tls, "TLS_AES_128_GCM_SHA256");
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		log_fatal_errno(-errno, "epoll_create1");
}

int
main(int argc, char *argv[])
{
	struct load l = {
		.path = "/tmp", .connections = 1, .inflight = 1, .size = 32
	};
	size_t mode = 0;

	log_init("load", LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	while (argc > 1 && mode < nitems(modes) &&
	       strcmp(argv[1], modes[mode].name) != 0)
		mode++;
	if (argc < 2 || mode == nitems(modes))
		usage();
	parse_flags(&l, argv + 2);
	prepare(&l);
	modes[mode].run(&l);
	figures_end();
	for (size_t i = 0; i < l.npeers; i++)
		peer_close(l.peers[i]);
	free(l.peers);
	stream_config_clear(&l.config);
	endpoint_clear(&l.endpoint);
	close(l.epoll);
	return 0;
}
