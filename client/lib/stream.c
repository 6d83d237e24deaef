/* SPDX-License-Identifier: ISC */
#include "stream.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#include "base64.h"

#define CHILD_GRACE_MS 2000 /* from the end of its input to SIGKILL */

/* --- TLS ---------------------------------------------------------------- */

/* Reports OpenSSL's oldest error, because it is the cause of the others. */
static char *
openssl_error(const char *what)
{
	unsigned long code = ERR_get_error();
	const char *reason = ERR_reason_error_string(code);
	const char *text = reason ? reason : "unknown error";
	char *sentence;

	if (code != 0 && ERR_SYSTEM_ERROR(code))
		text = strerror(ERR_GET_REASON(code));
	sentence = xasprintf("%s: %s", what, text);
	ERR_clear_error();
	return sentence;
}

static int
load_ca(SSL_CTX *ctx, const char *ca_file, char **error)
{
	_cleanup_free_ char *what = NULL;

	if (ca_file == NULL && SSL_CTX_set_default_verify_paths(ctx) == 1)
		return 0;
	if (ca_file != NULL && SSL_CTX_load_verify_file(ctx, ca_file) == 1)
		return 0;
	what = xasprintf("certificates of authorities, %s",
	    ca_file ? ca_file : "the system's");
	*error = openssl_error(what);
	return -EINVAL;
}

static int
load_certificate(
    SSL_CTX *ctx, const char *certificate, const char *key, char **error)
{
	_cleanup_free_ char *what = NULL;

	if (certificate == NULL)
		return 0;
	if (key == NULL)
		key = certificate;
	if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1) {
		what = xasprintf("client certificate %s", certificate);
		*error = openssl_error(what);
		return -EINVAL;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1) {
		what = xasprintf("key %s of the client certificate", key);
		*error = openssl_error(what);
		return -EINVAL;
	}
	return 0;
}

int
stream_tls_config(struct stream_config *config, const char *ca_file,
    const char *certificate_file, const char *key_file, char **error)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (ctx == NULL) {
		*error = openssl_error("TLS");
		return -EINVAL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	config->tls = ctx;
	if (load_ca(ctx, ca_file, error) < 0)
		return -EINVAL;
	return load_certificate(ctx, certificate_file, key_file, error);
}

/* The certificate must name the host. A host that is an IP address must be in
 * it as an address. */
static bool
expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 ||
	    inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
	return SSL_set_tlsext_host_name(ssl, host) == 1 &&
	       SSL_set1_host(ssl, host) == 1;
}

/* Tells whether nobody whom this machine trusts has signed it. */
static bool
is_unknown_authority(long verdict)
{
	return verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
	       verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
	       verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
	       verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

/* Returns what the user can do about it, or what OpenSSL leaves out. The caller
 * owns it. */
static char *
what_to_know(long verdict, const char *host)
{
	if (is_unknown_authority(verdict))
		return xstrdup("; --ca names a file with a certificate to "
			       "trust, and `execctl environments add' takes "
			       "the server's key");
	if (verdict == X509_V_ERR_HOSTNAME_MISMATCH ||
	    verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
		return xasprintf("; it is not for %s", host);
	return xstrdup("");
}

int
stream_verdict(const struct stream *s, const char *host, char **error)
{
	long verdict = SSL_get_verify_result(s->tls);
	_cleanup_free_ char *more = what_to_know(verdict, host);

	if (verdict == X509_V_OK)
		return 0;
	*error = xasprintf("the server's certificate is refused: %s%s",
	    X509_verify_cert_error_string(verdict), more);
	return is_unknown_authority(verdict) ? -ENOKEY : -EACCES;
}

int
stream_server_key(const struct stream *s, char key[STREAM_KEY_MAX])
{
	X509 *certificate = SSL_get0_peer_certificate(s->tls);
	uint8_t hash[SHA256_DIGEST_LENGTH], *spki = NULL;
	int len;

	if (certificate == NULL)
		return -EPROTO;
	len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &spki);
	if (len <= 0)
		return -EPROTO;
	SHA256(spki, (size_t)len, hash);
	OPENSSL_free(spki);
	strcpy(key, "SHA256:");
	/* The last of 44 characters is padding. */
	key[6 + base64_encode(key + 7, hash, sizeof(hash))] = '\0';
	return 0;
}

static int
handshake_error(
    struct stream *s, const char *host, bool any_key, int reason, char **error)
{
	int saved = errno;

	if (!any_key && stream_verdict(s, host, error) < 0) {
		ERR_clear_error();
		return -EACCES;
	}
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER) {
		*error = xstrdup("TLS handshake: the server does not speak "
				 "TLS; its address begins with ws://");
		ERR_clear_error();
	} else if (reason == SSL_ERROR_SYSCALL && ERR_peek_error() == 0) {
		*error = xasprintf("TLS handshake: %s",
		    saved ? strerror(saved) : "the connection was closed");
	} else {
		*error = openssl_error("TLS handshake");
	}
	return -EPROTO;
}

int
stream_handshake(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, char **error)
{
	int reason, n;

	if (s->tls == NULL) {
		s->tls = SSL_new(config->tls);
		if (s->tls == NULL || !expect_host(s->tls, e->host) ||
		    SSL_set_fd(s->tls, s->in) != 1) {
			*error = openssl_error("TLS");
			return -EPROTO;
		}
		if (config->any_key)
			SSL_set_verify(s->tls, SSL_VERIFY_NONE, NULL);
	}
	errno = 0;
	n = SSL_connect(s->tls);
	if (n == 1)
		return 0;
	reason = SSL_get_error(s->tls, n);
	if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE)
		return handshake_error(
		    s, e->host, config->any_key, reason, error);
	s->tls_wants = reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
	return -EAGAIN;
}

/* In TLS 1.3 the server rejects our certificate only after the handshake, so
 * the error shows when we read or write. */
static int
alert_error(int reason)
{
	switch (reason) {
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
		return -EKEYREVOKED;
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return -EKEYEXPIRED;
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return -EKEYREJECTED;
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return -ENOKEY;
	default:
		return -EPROTO;
	}
}

const char *
stream_strerror(int err)
{
	switch (-err) {
	case EKEYREVOKED:
		return "the server refuses our certificate: it is revoked";
	case EKEYEXPIRED:
		return "the server refuses our certificate: it has expired";
	case EKEYREJECTED:
		return "the server refuses our certificate";
	case ENOKEY:
		return "the server requires a certificate, and none was given";
	default:
		return strerror(-err);
	}
}

/* Converts the result of SSL_read_ex() or SSL_write_ex() to that of
 * stream_read(). */
static ssize_t
transfer_result(struct stream *s, int ok, size_t done)
{
	int reason, alert, saved = errno;

	if (ok == 1)
		return (ssize_t)done;
	reason = SSL_get_error(s->tls, ok);
	alert = alert_error(ERR_GET_REASON(ERR_peek_error()));
	ERR_clear_error();
	switch (reason) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return saved ? -saved : -ECONNRESET;
	default:
		return alert;
	}
}

static ssize_t
tls_read(struct stream *s, void *p, size_t n)
{
	size_t done = 0;
	int ok;

	errno = 0;
	ok = SSL_read_ex(s->tls, p, n, &done);
	return transfer_result(s, ok, done);
}

static ssize_t
tls_write(struct stream *s, const void *p, size_t n)
{
	size_t done = 0;
	int ok;

	errno = 0;
	ok = SSL_write_ex(s->tls, p, n, &done);
	return transfer_result(s, ok, done);
}

static void
tls_close(struct stream *s)
{
	/* Best effort: the peer also learns of the end from the socket. */
	if (SSL_is_init_finished(s->tls))
		SSL_shutdown(s->tls);
	SSL_free(s->tls);
	ERR_clear_error();
	s->tls = NULL;
}

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
	SSL_CTX_free(config->tls);
	config->tls = NULL;
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
run_command(const char *command, bool alone, int in, int out)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	if (alone) {
		setsid();
	} else {
		/* A ^C at the terminal is for the remote command. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static int
make_pipes(int to[2], int from[2])
{
	int err;

	if (pipe2(to, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(from, O_CLOEXEC) == 0)
		return 0;
	err = -errno;
	close(to[0]);
	close(to[1]);
	return err;
}

pid_t
stream_start(const char *command, bool alone, int *to, int *from)
{
	int in[2], out[2], err = make_pipes(in, out);
	pid_t pid;

	if (err < 0)
		return err;
	pid = fork();
	if (pid == 0)
		run_command(command, alone, in[0], out[1]);
	err = pid < 0 ? -errno : 0;
	close(in[0]);
	close(out[1]);
	*to = in[1];
	*from = out[0];
	if (err == 0) {
		set_nonblock(*to);
		set_nonblock(*from);
		return pid;
	}
	close(*to);
	close(*from);
	*to = *from = -1;
	return err;
}

static int
start_command(struct stream *s, const char *command)
{
	pid_t pid = stream_start(command, false, &s->out, &s->in);

	s->child = pid > 0 ? pid : 0;
	return pid > 0 ? 0 : (int)pid;
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
		return tls_read(s, p, n);
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
		return tls_write(s, p, n);
	if (s->child == 0)
		put = send(s->out, p, n, MSG_NOSIGNAL);
	else
		put = write(s->out, p, n);
	if (put < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	s->written += (uint64_t)put;
	return put;
}

bool
stream_has_input(const struct stream *s)
{
	/* SSL_has_pending() would also count half a record, which cannot be
	 * read yet. */
	return s->tls != NULL && SSL_pending(s->tls) > 0;
}

/* Bytes of a socket that nobody has taken yet. A pipe tells nothing. */
static int
untaken(const struct stream *s)
{
	int n = 0;

	return ioctl(s->out, SIOCOUTQ, &n) == 0 ? n : 0;
}

bool
stream_is_behind(const struct stream *s)
{
	return untaken(s) > 0;
}

uint64_t
stream_taken(const struct stream *s)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(s->out, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
		return info.tcpi_bytes_acked;
	return s->written - (uint64_t)untaken(s);
}

bool
stream_wait(int pidfd, int timeout_ms)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int64_t left, end = now_ms() + timeout_ms;
	int n = 0;

	while (pidfd >= 0 && n <= 0 && (left = end - now_ms()) > 0)
		n = poll(&ended, 1, (int)left);
	return n > 0;
}

/* Waits for the child, whose input is closed: most programs end then. Without
 * pidfds (Linux before 5.3) the child is killed at once. */
static void
end_child(pid_t child)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);

	if (!stream_wait(pidfd, CHILD_GRACE_MS))
		kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (pidfd >= 0)
		close(pidfd);
}

void
stream_close(struct stream *s)
{
	if (s->tls != NULL)
		tls_close(s);
	if (s->out >= 0 && s->out != s->in)
		close(s->out);
	if (s->in >= 0)
		close(s->in);
	if (s->child > 0)
		end_child(s->child);
	stream_init(s);
}
