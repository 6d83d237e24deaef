/*
 * Listening addresses, parsed and bound before anything else happens.
 */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "options.h"
#include "util.h"

#define LISTEN_BACKLOG 4096

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Digits only, 0 to 65535. */
static int
parse_port(const char *text, in_port_t *port)
{
	unsigned long n = 0;
	size_t len = strlen(text);

	if (len == 0 || len > 5 || strspn(text, "0123456789") != len)
		return -EINVAL;
	n = strtoul(text, NULL, 10);
	if (n > 65535)
		return -EINVAL;
	*port = htons((uint16_t)n);
	return 0;
}

/* "127.0.0.1:80" or "[::1]:80": a literal address and a port, no more. */
static int
parse_address(const char *text, union address *a)
{
	char host[INET6_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[';
	size_t len;

	if (colon == NULL || (v6 && (colon == text || colon[-1] != ']')))
		return -EINVAL;
	len = (size_t)(colon - text) - (v6 ? 2 : 0);
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text + (v6 ? 1 : 0), len);
	host[len] = '\0';
	memset(a, 0, sizeof(*a));
	a->any.sa_family = v6 ? AF_INET6 : AF_INET;
	if (v6)
		return inet_pton(AF_INET6, host, &a->in6.sin6_addr) == 1
			   ? parse_port(colon + 1, &a->in6.sin6_port)
			   : -EINVAL;
	return inet_pton(AF_INET, host, &a->in.sin_addr) == 1
		   ? parse_port(colon + 1, &a->in.sin_port)
		   : -EINVAL;
}

static bool
is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
}

static socklen_t
address_len(const union address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

static void
format_url(struct listener *l, const union address *a)
{
	char host[INET6_ADDRSTRLEN];

	if (a->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "ws://[%s]:%u", host,
		    ntohs(a->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "ws://%s:%u", host,
		    ntohs(a->in.sin_port));
	}
}

static int
bind_and_listen(int fd, union address *a)
{
	socklen_t len = address_len(a);
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &a->any, len) < 0 || listen(fd, LISTEN_BACKLOG) < 0 ||
	    getsockname(fd, &a->any, &len) < 0)
		return -errno;
	return 0;
}

static int
open_ws(struct listener *l, const char *url)
{
	_cleanup_close_ int fd = -1;
	union address a;
	int err;

	if (parse_address(url + strlen("ws://"), &a) < 0) {
		fprintf(stderr,
		    "execd: invalid websocket --listen URL `%s`; "
		    "expected `ws://IP:PORT`\n",
		    url);
		return EXIT_USAGE;
	}
	l->kind = LISTENER_WS;
	l->loopback = is_loopback(&a);
	fd = socket(
	    a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = fd < 0 ? -errno : bind_and_listen(fd, &a);
	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", url, strerror(-err));
		return err == -EACCES ? EXIT_PERMISSION : EXIT_FAILED;
	}
	format_url(l, &a);
	l->fd = steal_fd(&fd);
	return 0;
}

/* Copies of 0 and 1: the originals become /dev/null, so that nothing but the
 * front-end can ever write to the client. */
static int
open_stdio(struct listener *l)
{
	l->kind = LISTENER_STDIO;
	l->loopback = true;
	l->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 4);
	l->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 4);
	if (l->fd < 0 || l->out_fd < 0) {
		fprintf(stderr, "execd: stdio: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	snprintf(l->url, sizeof(l->url), "stdio");
	return 0;
}

int
listener_open(struct listener *l, const char *url)
{
	*l = (struct listener){ .fd = -1, .out_fd = -1 };
	if (strcmp(url, "stdio") == 0 || strcmp(url, "stdio://") == 0)
		return open_stdio(l);
	if (strncmp(url, "ws://", 5) == 0)
		return open_ws(l, url);
	fprintf(stderr,
	    "execd: unsupported --listen URL `%s`; expected "
	    "`ws://IP:PORT` or `stdio`\n",
	    url);
	return EXIT_USAGE;
}

void
listener_close(struct listener *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->out_fd >= 0)
		close(l->out_fd);
	l->fd = l->out_fd = -1;
}
