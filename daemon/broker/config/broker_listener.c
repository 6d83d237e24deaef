/* SPDX-License-Identifier: ISC */
#include "broker_listener.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "conf.h"
#include "exit_code.h"
#include "spawn_client.h"
#include "systemd.h"
#include "tcp_peer.h"

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
	l->fd = l->out_fd = l->diag_fd = l->chain_fd = l->key_fd = -1;
	l->client_ca_fd = l->client_crl_fd = -1;
	return l;
}

void
listener_free(struct listener *l)
{
	const int fds[] = { l->fd, l->out_fd, l->diag_fd, l->chain_fd,
		l->key_fd, l->client_ca_fd, l->client_crl_fd };

	for (size_t i = 0; i < nitems(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	conf_clear(&conf_listener, l);
	free(l->name);
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

/* Two leading slashes would begin a host, as in `unix:///path`. */
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
	{ "tcp://", ADDRESS_TCP },
	{ "unix:", ADDRESS_UNIX },
	{ "systemd:", ADDRESS_SYSTEMD },
};

/* Returns 0 or -EINVAL. Leaves *a as it is for ADDRESS_SYSTEMD and
 * ADDRESS_STDIO. */
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

/* --- sockets ------------------------------------------------------------ */

/* Describes the listener in the words that a client used for it. */
static void
describe(struct listener *l, const union address *a)
{
	const char *scheme = l->keys.agent	   ? "tcp"
			     : listener_has_tls(l) ? "wss"
						   : "ws";
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

/* Reads the address from the kernel, which knows the real port. */
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

/* The name of the socket that the previous configuration has for this listener.
 * It is the address. With port 0 the same address can stand for several
 * sockets, so the listener's name decides. */
static void
name_place(const struct listener *l, char name[CONTROL_PLACE_MAX])
{
	size_t len = strlen(l->address);
	bool any_port = len > 2 && strcmp(l->address + len - 2, ":0") == 0;

	snprintf(name, CONTROL_PLACE_MAX, "%.150s %.48s%s", l->address,
	    any_port ? l->name : "", l->ipv6_only ? " 6" : "");
}

static int
describe_place(const struct listener *l, struct control_place *p)
{
	const struct group *gr = NULL;
	enum address_scheme scheme;
	union address a = { .any.sa_family = AF_UNSPEC };

	*p = (struct control_place){ .kind = PLACE_LISTENER,
		.mode = l->mode == CONF_MODE_UNSET ? 0600 : l->mode,
		.gid = CONTROL_GID_NONE,
		.ipv6_only = l->ipv6_only };
	if (parse_address(l->address, &scheme, &a) < 0)
		return -EINVAL;
	if (l->group != NULL && (gr = getgrnam(l->group)) == NULL)
		return -ENOENT;
	if (gr != NULL)
		p->gid = gr->gr_gid;
	name_place(l, p->name);
	if (scheme == ADDRESS_UNIX)
		memcpy(p->path, a.un.sun_path, sizeof(a.un.sun_path));
	else
		memcpy(p->address, &a.in6, sizeof(p->address));
	return 0;
}

/* As root, binds the socket, or takes the one that the previous broker had. */
static int
have_bound(struct listener *l)
{
	struct control_found found;
	struct control_place p;
	struct stat st;
	int fd, err = describe_place(l, &p);

	if (err == 0)
		err = spawn_place(&p, &fd, &found);
	l->place = p.number;
	if (err == 0)
		err = fd < 0 ? -EBADMSG : take_socket(l, fd);
	if (err < 0 || p.path[0] == '\0')
		return err;
	if (lstat(p.path, &st) < 0)
		log_warn(-errno, "%s: nobody can connect", l->address);
	else if (!S_ISSOCK(st.st_mode))
		log_warn(0,
		    "%s: somebody has put something else there: nobody can "
		    "connect",
		    l->address);
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

/* Copies descriptors 0 and 1. The originals become /dev/null, so that only the
 * front-end can write to the client. */
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

/* Returns 0, or an enum exit_code after logging the error. */
static int
open_diag(struct listener *l)
{
	if (!l->keys.peer_user || l->kind != LISTENER_WS)
		return 0;
	if (!l->loopback) {
		log_error(0,
		    "%s: auth = peer-user needs a loopback address, and "
		    "systemd's socket has %s",
		    l->address, l->url);
		return EXIT_CONFIG;
	}
	l->diag_fd = tcp_peer_open(l->fd);
	if (l->diag_fd >= 0)
		return 0;
	log_error(l->diag_fd,
	    "%s: auth = peer-user: the kernel does not say who connects there "
	    "(sock_diag(7))",
	    l->address);
	return EXIT_UNENFORCEABLE;
}

int
listener_open(struct listener *l)
{
	int err;

	l->id = ids_used++;
	if (l->scheme == ADDRESS_STDIO)
		err = open_stdio(l);
	else if (l->scheme == ADDRESS_SYSTEMD)
		err = take_activated(l);
	else
		err = have_bound(l);
	if (err == 0)
		return open_diag(l);
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
listener_close(const struct listener *l)
{
	if (l->fd >= 0 && l->scheme != ADDRESS_STDIO &&
	    l->scheme != ADDRESS_SYSTEMD)
		spawn_close(l->place);
}
