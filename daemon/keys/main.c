/* SPDX-License-Identifier: ISC */
/*
 * execd-keys does for the front-end what the front-end must not do itself. The
 * program runs as one of two processes. The key process holds the private keys
 * of the TLS listeners and signs with them. The certificate process holds the
 * client CAs and verifies certificates; it has no key that a hostile
 * certificate could steal.
 *
 * The broker starts both, each with one channel on descriptor 3. On this
 * channel the broker first sends the keys or CAs; after that the front-end
 * sends its requests. The process trusts the broker and does not trust the
 * front-end. It opens no file and no socket, and it ends when the channel is
 * closed.
 */
#include <openssl/pem.h>
#include <sys/resource.h>

#include "base.h"
#include "cert_verdict.h"
#include "crypto_memory.h"
#include "drop.h"
#include "filter_rows.h"
#include "keys.h"
#include "landlock.h"
#include "rights.h"
#include "seqpacket.h"
#include "signals.h"

/* The system calls that it needs once it has its keys or CAs: it reads one
 * channel, computes, and answers on that channel. */
static const struct filter_rule rules[] = {
	FILTER_CHANNEL,
	FILTER_MEMORY,
	FILTER_SELF,
	FILTER_TRIED,
#if EXECD_SANITIZED
	FILTER_SANITIZER,
#endif
};

enum keys_state {
	KEYS_LOADING = 1 << 0,
	KEYS_SIGNING = 1 << 1,
	KEYS_VERIFYING = 1 << 2
};

static struct key {
	uint32_t number;
	EVP_PKEY *pkey;
} keys[CONTROL_LISTENERS_MAX];
static size_t nkeys;
static enum keys_state state = KEYS_LOADING;
static uint8_t secret[CONTROL_SECRET_BYTES];

#if EXECD_SANITIZED
/* The leak checker attaches to its own process, which the filter forbids. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

static EVP_PKEY *
load_key(int fd)
{
	struct stat st;
	EVP_PKEY *pkey;
	void *text;
	BIO *bio;

	if (fstat(fd, &st) < 0 || st.st_size == 0)
		return NULL;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return NULL;
	bio = BIO_new_mem_buf(text, (int)st.st_size);
	pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
		   : NULL;
	BIO_free(bio);
	munmap(text, (size_t)st.st_size);
	return pkey;
}

static int
take_key(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_key k;
	EVP_PKEY *pkey;

	if (nfds != 1 || control_get(packet, len, KEYS_CONFIGURE, &k) < 0 ||
	    nkeys == nitems(keys) || trust_is_there())
		return -EBADMSG;
	pkey = load_key(fds[0]);
	close(fds[0]);
	if (pkey == NULL)
		log_fatal("a key that cannot be read");
	keys[nkeys].number = k.key;
	keys[nkeys++].pkey = pkey;
	return 0;
}

static int
take_trust(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_trust t;

	if (control_get(packet, len, KEYS_TRUST, &t) < 0 ||
	    nfds != (t.crl ? 2 : 1) || nkeys > 0)
		return -EBADMSG;
	if (trust_add(t.listener, fds[0], t.crl ? fds[1] : -1) < 0)
		log_fatal("a client CA that cannot be read");
	while (nfds > 0)
		close(fds[--nfds]);
	return 0;
}

static void
limit(int resource)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(resource, &none) < 0)
		log_fatal_errno(-errno, "limits");
}

/* From now on the process needs only its channel and processor time. */
static void
confine(void)
{
	int err;

	limit(RLIMIT_NPROC);
	limit(RLIMIT_CORE);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_fatal_errno(-errno, "prctl");
	landlock_deny_all();
	err = filter_load(rules, nitems(rules));
	if (err < 0)
		log_fatal_errno(err, "system call filter");
}

static int
take_serve(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_serve s;

	if (nfds > 0 || control_get(packet, len, KEYS_SERVE, &s) < 0)
		return -EBADMSG;
	memcpy(secret, s.secret, sizeof(secret));
	explicit_bzero(&s, sizeof(s));
	rights_refuse(CONTROL_FD);
	state = trust_is_there() ? KEYS_VERIFYING : KEYS_SIGNING;
	if (state == KEYS_VERIFYING)
		prctl(PR_SET_NAME, "execd-certs");
	confine();
	return 0;
}

static EVP_PKEY *
find_key(uint32_t number)
{
	for (size_t i = 0; i < nkeys; i++)
		if (keys[i].number == number)
			return keys[i].pkey;
	return NULL;
}

static void
reply(enum control_type type, const void *answer)
{
	struct pollfd room = { .fd = CONTROL_FD, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, answer);
	while ((err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0)) ==
	       -EAGAIN)
		poll(&room, 1, -1);
	buf_clear(&b);
	if (err < 0)
		exit(0); /* the front-end has closed the channel */
}

/* A request that is not part of a handshake means that the front-end is
 * compromised. */
static int
take_sign(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_signed answer = { 0 };
	struct control_sign r;
	EVP_PKEY *pkey;
	int err;

	if (nfds > 0 || control_get(packet, len, KEYS_SIGN, &r) < 0)
		return -EBADMSG;
	pkey = find_key(r.key);
	if (pkey == NULL || sign_check(&r) < 0)
		return -EPERM;
	answer.serial = r.serial;
	err = sign_make(pkey, &r, &answer);
	if (err < 0)
		log_error(err, "signing with scheme 0x%04x", r.scheme);
	reply(KEYS_SIGNED, &answer);
	return 0;
}

static int
take_verify(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_verified answer = { 0 };
	struct control_verify r;

	if (nfds > 0 || control_get(packet, len, KEYS_VERIFY, &r) < 0)
		return -EBADMSG;
	if (trust_verify(&r, &answer) < 0)
		return -EPERM;
	if (answer.error == 0)
		cert_verdict_seal(&answer.cert_verdict, secret);
	reply(KEYS_VERIFIED, &answer);
	return 0;
}

static int
take_ping(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_alive a;

	if (nfds > 0 || control_get(packet, len, KEYS_PING, &a) < 0)
		return -EBADMSG;
	reply(KEYS_ALIVE, &a);
	return 0;
}

static const struct request {
	enum control_type type;
	unsigned when;
	int (*take)(
	    const uint8_t *packet, size_t len, const int *fds, size_t nfds);
} requests[] = {
	{ KEYS_CONFIGURE, KEYS_LOADING, take_key },
	{ KEYS_SERVE, KEYS_LOADING, take_serve },
	{ KEYS_TRUST, KEYS_LOADING, take_trust },
	{ KEYS_SIGN, KEYS_SIGNING, take_sign },
	{ KEYS_VERIFY, KEYS_VERIFYING, take_verify },
	{ KEYS_PING, KEYS_SIGNING | KEYS_VERIFYING, take_ping },
};

static void
take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(requests); i++) {
		if (requests[i].type != type)
			continue;
		if (!(requests[i].when & state) ||
		    requests[i].take(packet, len, fds, nfds) < 0)
			break;
		return;
	}
	log_fatal("impossible request: %s", control_name(type));
}

int
main(int argc, char **argv)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	struct pollfd ready = { .fd = CONTROL_FD, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	log_init("execd-keys", LOG_LEVEL_INFO);
	log_never_block();
	/* Privileges are dropped before the process holds any secret. */
	if (argc == 3 && strcmp(argv[1], "--user") == 0) {
		drop_bounding_set();
		drop_to_given(argv[2]);
	}
	drop_visibility();
	prctl(PR_SET_NAME, "execd-keys");
	/* The process dies with its broker, even if the front-end lives on. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signals_ignore_unused(true);
	crypto_memory_init_secret();
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	for (;;) {
		n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds);
		if (n == -EAGAIN)
			poll(&ready, 1, log_flush() ? -1 : LOG_RETRY_MS);
		else if (n == 0 || n == -ECONNRESET)
			return 0;
		else if (n < 0)
			log_fatal_errno((int)n, "channel");
		else
			take(packet, (size_t)n, fds, nfds);
	}
}
