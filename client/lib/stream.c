/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a connection, without TLS (stream_tls.c).
 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stream_tls.h"
#include "util.h"

#define CHILD_GRACE_MS 2000 /* from the end of its input to SIGKILL */

/* --- Addresses ---------------------------------------------------------- */

/* Like getaddrinfo(3), but with a timeout. If the request cannot be cancelled
 * it is leaked, because the resolver's thread still writes to it. */
static int
look_up(
    const struct endpoint *e, unsigned int timeout_ms, struct addrinfo **out)
{
	struct timespec timeout = { (time_t)(timeout_ms / 1000),
		(long)(timeout_ms % 1000) * 1000000 };
	struct addrinfo *hints = xcalloc(1, sizeof(*hints));
	struct gaicb *request = xcalloc(1, sizeof(*request));
	const struct gaicb *wait[] = { request };
	struct gaicb *start[] = { request };
	int err;

	hints->ai_socktype = SOCK_STREAM;
	hints->ai_flags = AI_NUMERICSERV;
	*request = (struct gaicb){
		.ar_name = e->host, .ar_service = e->port, .ar_request = hints
	};
	err = getaddrinfo_a(GAI_NOWAIT, start, 1, NULL);
	if (err == 0)
		gai_suspend(wait, 1, &timeout);
	if (err == 0)
		err = gai_error(request);
	if (err == EAI_INPROGRESS && gai_cancel(request) != EAI_CANCELED)
		return err;
	*out = request->ar_result;
	free(request);
	free(hints);
	return err;
}

static void
keep_addresses(struct stream_config *config, const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		size_t i = config->naddresses;

		if (i == STREAM_ADDRESSES_MAX ||
		    a->ai_addrlen > sizeof(config->addresses[i]))
			continue;
		memcpy(&config->addresses[i], a->ai_addr, a->ai_addrlen);
		config->lengths[i] = a->ai_addrlen;
		config->naddresses++;
	}
}

static int
resolve_file(
    struct stream_config *config, const struct endpoint *e, char **error)
{
	struct sockaddr_un *un = (struct sockaddr_un *)config->addresses;

	if (strlen(e->file) >= sizeof(un->sun_path)) {
		*error = xasprintf("%s: the path of a socket has at most %zu "
				   "bytes",
		    e->file, sizeof(un->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(un->sun_path, e->file, strlen(e->file));
	config->lengths[0] = sizeof(*un);
	config->naddresses = 1;
	return 0;
}

int
stream_resolve(struct stream_config *config, const struct endpoint *e,
    unsigned int timeout_ms, char **error)
{
	struct addrinfo *list = NULL;
	int err;

	config->naddresses = e->kind == ENDPOINT_STDIO;
	if (e->kind == ENDPOINT_STDIO)
		return 0;
	if (e->kind == ENDPOINT_UNIX)
		return resolve_file(config, e, error);
	err = look_up(e, timeout_ms, &list);
	if (err == EAI_INPROGRESS || err == EAI_CANCELED) {
		*error = xasprintf("%s: no address was found within %u ms",
		    e->host, timeout_ms);
		return -ETIMEDOUT;
	}
	if (err != 0) {
		*error = xasprintf("%s: %s", e->host, gai_strerror(err));
		return -ENOENT;
	}
	keep_addresses(config, list);
	freeaddrinfo(list);
	return 0;
}

void
stream_config_clear(struct stream_config *config)
{
	if (config->tls != NULL)
		stream_tls_config_clear(config);
	config->naddresses = 0;
}

/* --- Connecting --------------------------------------------------------- */

void
stream_init(struct stream *s)
{
	*s = (struct stream){ .in = -1, .out = -1 };
}

static int
connect_socket(struct stream *s, const struct sockaddr *address, socklen_t len)
{
	static const int on = 1;
	int fd = socket(
	    address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	s->in = s->out = fd;
	/* Sends small messages at once. A UNIX socket does not know the
	 * option. */
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return connect(fd, address, len) < 0 ? -errno : 0;
}

/* Runs in the child after fork(2), so it calls only async-signal-safe
 * functions. */
static void __attribute__((noreturn))
run_command(const char *command, int in, int out)
{
	static const int by_default[] = { SIGPIPE, SIGTERM, SIGHUP, SIGTSTP };
	sigset_t none;

	for (size_t i = 0; i < nitems(by_default); i++)
		signal(by_default[i], SIG_DFL);
	/* A ^C at the terminal is for the remote command, not for this one. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static int
start_command(struct stream *s, const char *command)
{
	int to[2], from[2], err;

	if (pipe2(to, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(from, O_CLOEXEC) < 0) {
		err = -errno;
		close(to[0]);
		close(to[1]);
		return err;
	}
	s->child = fork();
	if (s->child == 0)
		run_command(command, to[0], from[1]);
	err = s->child < 0 ? -errno : 0;
	close(to[0]);
	close(from[1]);
	s->out = to[1];
	s->in = from[0];
	if (err < 0)
		s->child = 0;
	if (err == 0)
		err = set_nonblock(s->out);
	return err < 0 ? err : set_nonblock(s->in);
}

int
stream_connect(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, size_t i)
{
	int err;

	if (e->kind == ENDPOINT_STDIO)
		err = start_command(s, e->command);
	else
		err = connect_socket(s,
		    (const struct sockaddr *)&config->addresses[i],
		    config->lengths[i]);
	if (err < 0 && err != -EINPROGRESS)
		stream_close(s);
	return err;
}

int
stream_connected(struct stream *s)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(s->in, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

/* --- Bytes -------------------------------------------------------------- */

ssize_t
stream_read(struct stream *s, void *p, size_t n)
{
	ssize_t got;

	if (s->tls != NULL)
		return stream_tls_read(s, p, n);
	got = read(s->in, p, n);
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return got;
}

ssize_t
stream_write(struct stream *s, const void *p, size_t n)
{
	ssize_t put;

	if (s->tls != NULL)
		return stream_tls_write(s, p, n);
	if (s->child == 0)
		put = send(s->out, p, n, MSG_NOSIGNAL);
	else
		put = write(s->out, p, n);
	if (put < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return put;
}

bool
stream_has_input(const struct stream *s)
{
	return s->tls != NULL && stream_tls_has_input(s);
}

/* Waits for the child, whose input is closed: most programs end then. A pidfd
 * is readable when the process has ended. Without pidfds (Linux before 5.3) the
 * child is killed at once. */
static void
end_child(pid_t child)
{
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, child, 0),
		.events = POLLIN };
	int64_t left, end = now_ms() + CHILD_GRACE_MS;
	int n = 0;

	while (ended.fd >= 0 && n <= 0 && (left = end - now_ms()) > 0)
		n = poll(&ended, 1, (int)left);
	if (n <= 0)
		kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (ended.fd >= 0)
		close(ended.fd);
}

void
stream_close(struct stream *s)
{
	if (s->tls != NULL)
		stream_tls_close(s);
	if (s->out >= 0 && s->out != s->in)
		close(s->out);
	if (s->in >= 0)
		close(s->in);
	if (s->child > 0)
		end_child(s->child);
	stream_init(s);
}
