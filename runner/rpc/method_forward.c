/* SPDX-License-Identifier: ISC */
/*
 * process/forward: a byte stream to a loopback port of a sandbox or of the
 * session (execd-protocol(7)). The socket is made and connected here; a process
 * of the session copies (forward_copy.h).
 */
#include <netinet/in.h>

#include "audit.h"
#include "base.h"
#include "methods.h"
#include "own_ports.h"

/* The name that process/list and the audit log show. */
#define NAME	    "execd-forward"
#define ADDRESS_MAX 64

/* --- which network ------------------------------------------------------ */

/*
 * Finds the sandbox whose loopback is meant. NULL: the host's, which an
 * unsandboxed command or one with the host's network reaches. Returns false if
 * the request was answered.
 */
static bool
find_network(struct request *r, const struct process_forward_params *p,
    struct sandbox **sandbox)
{
	struct session *s = r->session;
	struct session_process *of = NULL;
	char error[ARGS_ERROR_MAX];

	*sandbox = NULL;
	if (p->has_of) {
		of = method_find_process(r, p->of);
		if (of == NULL)
			return false;
		*sandbox = of->process.sandbox;
		if (of->process.state.closed) {
			reply_error(r->channel, &r->id, RPC_MALFORMED,
			    "process %.*s has ended, and what it served",
			    (int)p->of.len, p->of.ptr);
			return false;
		}
	}
	if (*sandbox != NULL && (*sandbox)->loopback)
		return true;
	*sandbox = NULL;
	if (ceiling_judge_loopback(&s->sandbox.ceiling, error) == 0)
		return true;
	reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	return false;
}

/* --- the connection ----------------------------------------------------- */

static int
make_socket(struct sandbox *sandbox, bool ipv6, int *fd)
{
	const struct loopback_socket s = { .type = SOCK_STREAM, .ipv6 = ipv6 };

	return sandbox_socket(sandbox, &s, fd);
}

/* What cannot be asked about is not connected. */
static int
check_own_port(int own_ports, const struct sockaddr *to)
{
	_cleanup_close_ int routes = own_ports_open();
	int err = own_ports_take(own_ports);

	if (routes < 0 || err < 0)
		return routes < 0 ? routes : err;
	return own_ports_has(routes, to) ? -OWN_PORTS_ERRNO : 0;
}

/* own_ports: for own_ports_take(); -1 for the loopback of a sandbox, which has
 * no port of execd. */
static int
begin_connect(int own_ports, int fd, bool ipv6, uint16_t port)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *to =
	    ipv6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;
	int err = own_ports >= 0 ? check_own_port(own_ports, to) : 0;

	if (err < 0)
		return err;
	err = connect(fd, to, ipv6 ? sizeof(v6) : sizeof(v4));
	return err < 0 && errno != EINPROGRESS ? -errno : 0;
}

/*
 * On loopback the answer to a connection is there at once, unless the queue of
 * the server is full. Then that process waits for it.
 */
static int
look_at(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&pfd, 1, 0) <= 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

static int
connect_to(struct session *s, struct sandbox *sandbox, bool ipv6, uint16_t port,
    int *fd)
{
	int err = make_socket(sandbox, ipv6, fd);

	if (err == 0)
		err = begin_connect(
		    sandbox == NULL ? s->own_ports : -1, *fd, ipv6, port);
	if (err == 0)
		err = look_at(*fd);
	if (err < 0 && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

/* A server may listen on one of the two addresses only. */
static int
connect_either(struct session *s, struct sandbox *sandbox,
    const struct process_forward_params *p, bool *ipv6)
{
	int fd = -1, err = -ECONNREFUSED;

	*ipv6 = p->host == FORWARD_IPV6;
	err = connect_to(s, sandbox, *ipv6, p->port, &fd);
	if (err < 0 && err != -OWN_PORTS_ERRNO && p->host == FORWARD_EITHER) {
		int second = connect_to(s, sandbox, true, p->port, &fd);

		*ipv6 = second == 0;
		err = second == 0 ? 0 : err;
	}
	return err < 0 ? err : fd;
}

/* --- the process -------------------------------------------------------- */

static struct session_process *
start_copying(struct request *r, const struct process_forward_params *p,
    char **argv, int fd)
{
	static const char *const candidates[] = { "/proc/self/exe", NULL };
	static char *const empty[] = { NULL };
	struct session *s = r->session;
	char *own[] = { argv[0], (char *)(uintptr_t) "--forward", NULL };
	struct spawn_request request = {
		.candidates = candidates,
		.argv = own,
		.envp = empty,
		.cwd = "/",
		.pipe_stdin = true,
		.parent_death_signal = !s->config.pid_namespace,
		.null_fd = s->null_fd,
		.given = fd,
	};
	struct session_process *sp = session_process_new(s, p->process_id);
	struct spawn_fault fault;
	int err = process_start(&sp->process, s->base, &s->groups, &request,
	    s->config.retention_bytes, &session_observer, sp, &fault);

	if (err < 0) {
		reply_os_error(r->channel, &r->id, err);
		free(sp);
		return NULL;
	}
	session_add(s, sp);
	session_note_command(sp, argv);
	return sp;
}

static void
reply_forwarded(struct request *r, const struct session_process *sp,
    bool sandboxed, bool ipv6)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_string(&w, "processId", sp->id, sp->id_len);
	json_key_cstring(&w, "host", ipv6 ? "::1" : "127.0.0.1");
	json_key_cstring(&w, "network", sandboxed ? "sandbox" : "host");
	reply_end(r->channel, &w);
}

int
method_process_forward(struct request *r, const union method_params *params)
{
	const struct process_forward_params *p = &params->process_forward;
	struct session *s = r->session;
	int64_t began_us = s->record != NULL ? now_us() : 0;
	char address[ADDRESS_MAX], name[] = NAME;
	char *argv[] = { name, address, NULL };
	_cleanup_close_ int fd = -1;
	struct session_process *sp;
	struct sandbox *sandbox;
	bool ipv6;

	if (session_find(s, p->process_id) != NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "process %.*s already exists", (int)p->process_id.len,
		    p->process_id.ptr);
	if ((s->record != NULL && !audit_permits(r)) ||
	    !find_network(r, p, &sandbox))
		return 0;
	fd = connect_either(s, sandbox, p, &ipv6);
	if (fd == -OWN_PORTS_ERRNO)
		return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "port %u of this host is a port of execd itself", p->port);
	if (fd < 0)
		return reply_os_error(r->channel, &r->id, fd);
	snprintf(address, sizeof(address), "%s:%s:%u",
	    sandbox != NULL ? "sandbox" : "host", ipv6 ? "[::1]" : "127.0.0.1",
	    p->port);
	sp = start_copying(r, p, argv, fd);
	if (sp == NULL)
		return 0;
	if (s->record != NULL)
		audit_started(sp, argv, "/", began_us);
	reply_forwarded(r, sp, sandbox != NULL, ipv6);
	return 0;
}
