/* SPDX-License-Identifier: ISC */
/*
 * Listening addresses.
 */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "activation.h"
#include "log.h"
#include "options.h"
#include "spawn_client.h"
#include "util.h"

#define LISTEN_BACKLOG 4096

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static uint32_t ids_used;

struct listener *
listener_new(const char *name)
{
	struct listener *l = xcalloc(1, sizeof(*l));

	l->name = xstrdup(name);
	l->mode = CONF_MODE_UNSET;
	l->hand_over = true;
	l->fd = l->out_fd = l->chain_fd = l->key_fd = -1;
	l->client_ca_fd = l->client_crl_fd = -1;
	return l;
}

void
listener_free(struct listener *l)
{
	const int fds[] = { l->fd, l->out_fd, l->chain_fd, l->key_fd,
		l->client_ca_fd, l->client_crl_fd };

	for (size_t i = 0; i < nitems(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(l->name);
	free(l->address);
	free(l->certificate);
	free(l->certificate_key);
	free(l->client_ca);
	free(l->client_crl);
	free(l->group);
	free(l->allow_unauthenticated);
	strings_clear(&l->identities);
	free(l);
}

/* --- addresses ---------------------------------------------------------- */

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
parse_ip(const char *text, union address *a)
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

/* Two slashes would begin a host, as in `unix:///path`. */
static int
parse_path(const char *path, union address *a)
{
	if (path[0] != '/' || path[1] == '/' ||
	    strlen(path) >= sizeof(a->un.sun_path))
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->un.sun_family = AF_UNIX;
	strncpy(a->un.sun_path, path, sizeof(a->un.sun_path) - 1);
	return 0;
}

static const struct scheme {
	const char *prefix;
	enum address_scheme scheme;
} schemes[] = {
	{ "ws://", ADDRESS_WS },
	{ "wss://", ADDRESS_WSS },
	{ "unix:", ADDRESS_UNIX },
	{ "systemd:", ADDRESS_SYSTEMD },
};

/* 0 or -EINVAL. Of ADDRESS_SYSTEMD and _STDIO *a stays as it is. */
static int
parse_address(const char *text, enum address_scheme *scheme, union address *a)
{
	if (strcmp(text, "stdio") == 0 || strcmp(text, "stdio://") == 0) {
		*scheme = ADDRESS_STDIO;
		return 0;
	}
	for (size_t i = 0; i < nitems(schemes); i++) {
		const char *rest = text + strlen(schemes[i].prefix);

		if (strncmp(text, schemes[i].prefix,
			strlen(schemes[i].prefix)) != 0)
			continue;
		*scheme = schemes[i].scheme;
		if (*scheme == ADDRESS_SYSTEMD)
			return *rest ? 0 : -EINVAL;
		return *scheme == ADDRESS_UNIX ? parse_path(rest, a)
					       : parse_ip(rest, a);
	}
	return -EINVAL;
}

static bool
is_loopback(const union address *a)
{
	switch (a->any.sa_family) {
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	case AF_INET:
		return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
	default:
		return true;
	}
}

int
listener_parse(struct listener *l)
{
	union address a = { .any.sa_family = AF_UNIX };
	int err = parse_address(l->address, &l->scheme, &a);

	l->loopback = err == 0 && is_loopback(&a);
	return err;
}

static socklen_t
address_len(const union address *a)
{
	switch (a->any.sa_family) {
	case AF_INET6:
		return sizeof(a->in6);
	case AF_INET:
		return sizeof(a->in);
	default:
		return sizeof(a->un);
	}
}

/* --- sockets ------------------------------------------------------------ */

/* What is listening there, in the words of a client. */
static void
describe(struct listener *l, const union address *a)
{
	const char *scheme = listener_has_tls(l) ? "wss" : "ws";
	char host[INET6_ADDRSTRLEN];

	l->kind = LISTENER_WS;
	l->loopback = is_loopback(a);
	if (a->any.sa_family == AF_UNIX) {
		l->kind = LISTENER_UNIX;
		snprintf(l->url, sizeof(l->url), "unix:%s", a->un.sun_path);
	} else if (a->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "%s://[%s]:%u", scheme, host,
		    ntohs(a->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof(host));
		snprintf(l->url, sizeof(l->url), "%s://%s:%u", scheme, host,
		    ntohs(a->in.sin_port));
	}
}

/* A socket file that nobody listens behind is what an earlier execd left. */
static void
remove_stale(const union address *a)
{
	_cleanup_close_ int fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd >= 0 && lstat(a->un.sun_path, &st) == 0 &&
	    S_ISSOCK(st.st_mode) && connect(fd, &a->any, sizeof(a->un)) < 0 &&
	    errno == ECONNREFUSED)
		unlink(a->un.sun_path);
}

/* Who may connect. */
static int
permit_unix(const struct listener *l, const char *path)
{
	mode_t mode = l->mode == CONF_MODE_UNSET ? 0600 : (mode_t)l->mode;
	const struct group *gr = NULL;

	if (l->group != NULL && (gr = getgrnam(l->group)) == NULL)
		return -ENOENT;
	if ((gr != NULL && lchown(path, (uid_t)-1, gr->gr_gid) < 0) ||
	    fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Nobody can connect before it is said who may. */
static int
bind_unix(const struct listener *l, int fd, const union address *a)
{
	mode_t old;
	int err = 0;

	remove_stale(a);
	old = umask(0777);
	if (bind(fd, &a->any, sizeof(a->un)) < 0)
		err = -errno;
	umask(old);
	return err < 0 ? err : permit_unix(l, a->un.sun_path);
}

static int
bind_ip(int fd, const union address *a)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	return bind(fd, &a->any, address_len(a)) < 0 ? -errno : 0;
}

/* Its address as the kernel has it: with the real port. */
static int
take_socket(struct listener *l, int fd)
{
	union address a = { 0 };
	socklen_t len = sizeof(a) - 1;

	if (getsockname(fd, &a.any, &len) < 0)
		return -errno;
	describe(l, &a);
	l->fd = fd;
	return 0;
}

static int
bind_and_listen(struct listener *l)
{
	_cleanup_close_ int fd = -1;
	union address a;
	int err;

	if (parse_address(l->address, &l->scheme, &a) < 0)
		return -EINVAL;
	fd = socket(
	    a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err =
	    l->scheme == ADDRESS_UNIX ? bind_unix(l, fd, &a) : bind_ip(fd, &a);
	if (err == 0 && listen(fd, LISTEN_BACKLOG) < 0)
		err = -errno;
	if (err == 0)
		err = take_socket(l, fd);
	if (err == 0)
		steal_fd(&fd);
	return err;
}

static int
take_activated(struct listener *l)
{
	const char *name = l->address + strlen("systemd:");
	_cleanup_close_ int fd = activation_find(name);
	int accepting = 0, err;
	socklen_t len = sizeof(accepting);

	if (fd < 0)
		return fd;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &len) < 0 ||
	    !accepting)
		return -ENOTSOCK;
	set_nonblock(fd);
	err = take_socket(l, fd);
	if (err == 0)
		steal_fd(&fd);
	return err;
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
	snprintf(l->url, sizeof(l->url), "stdio");
	return l->fd < 0 || l->out_fd < 0 ? -errno : 0;
}

static int
take_over(struct listener *l, const struct listener *before)
{
	int err, fd = fcntl(before->fd, F_DUPFD_CLOEXEC, 4);

	if (fd < 0)
		return -errno;
	l->id = before->id;
	err = take_socket(l, fd);
	if (err == 0 && l->scheme == ADDRESS_UNIX)
		err = permit_unix(l, l->address + strlen("unix:"));
	return err;
}

bool
listener_stays(const struct listener *old, const struct listener *next)
{
	size_t len = strlen(old->address);

	if (strcmp(old->address, next->address) != 0)
		return false;
	if (old->scheme != ADDRESS_WS && old->scheme != ADDRESS_WSS)
		return true;
	return strcmp(old->address + len - 2, ":0") != 0 ||
	       strcmp(old->name, next->name) == 0;
}

/* Under which root keeps its socket: as listener_stays(). */
static void
name_stored(const struct listener *l, char name[CONTROL_STORE_NAME_MAX])
{
	size_t len = strlen(l->address);
	bool any_port = len > 2 && strcmp(l->address + len - 2, ":0") == 0;

	snprintf(name, CONTROL_STORE_NAME_MAX, "listener %.150s %.48s",
	    l->address, any_port ? l->name : "");
}

/* The socket of the broker before this one. -ENOENT: there is none. */
static int
take_stored(struct listener *l)
{
	char name[CONTROL_STORE_NAME_MAX];
	int fd, err;

	name_stored(l, name);
	fd = spawn_take(name);
	if (fd < 0)
		return -ENOENT;
	err = take_socket(l, fd);
	if (err == 0 && l->scheme == ADDRESS_UNIX)
		err = permit_unix(l, l->address + strlen("unix:"));
	return err;
}

static int
open_new(struct listener *l)
{
	char name[CONTROL_STORE_NAME_MAX];
	int err;

	l->id = ids_used++;
	if (l->scheme == ADDRESS_STDIO)
		return open_stdio(l);
	err = take_stored(l);
	if (err == -ENOENT)
		err = l->scheme == ADDRESS_SYSTEMD ? take_activated(l)
						   : bind_and_listen(l);
	name_stored(l, name);
	if (err == 0)
		spawn_store(name, l->fd);
	return err;
}

int
listener_open(struct listener *l, const struct listener *before)
{
	int err;

	if (before != NULL && before->fd >= 0)
		err = take_over(l, before);
	else
		err = open_new(l);
	if (err == 0)
		return 0;
	if (l->scheme == ADDRESS_SYSTEMD && err == -ENOENT)
		log_error(0,
		    "%s: execd was started without a socket of that "
		    "name (LISTEN_FDNAMES)",
		    l->address);
	else
		log_error(err, "%s", l->address);
	return err == -EACCES ? EXIT_PERMISSION : EXIT_FAILED;
}

bool
listener_was(uint32_t id)
{
	return id < ids_used;
}

void
listener_unlink(const struct listener *l)
{
	char name[CONTROL_STORE_NAME_MAX];

	if (l->fd < 0 || l->scheme == ADDRESS_STDIO)
		return;
	name_stored(l, name);
	spawn_store(name, -1);
	if (l->scheme == ADDRESS_UNIX)
		unlink(l->address + strlen("unix:"));
}
