/*
 * execd-keys: holds the private keys of the TLS listeners. Started by the
 * monitor with one channel on descriptor 3: first the monitor says there what
 * the keys are, then the front-end asks for signatures. It opens nothing,
 * knows nobody, and ends with its channel.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "control.h"
#include "landlock.h"
#include "log.h"
#include "policy.h"
#include "seqpacket.h"
#include "sign.h"
#include "util.h"

enum keys_state { KEYS_LOADING = 1 << 0, KEYS_SERVING = 1 << 1 };

static struct key {
	uint32_t number;
	EVP_PKEY *pkey;
} keys[CONTROL_LISTENERS_MAX];
static size_t nkeys;
static enum keys_state state = KEYS_LOADING;

#if EXECD_SANITIZED
/* The leak checker attaches to its own process; the filter forbids that. */
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
take_key(const uint8_t *packet, size_t len, int fd)
{
	struct control_key k;
	EVP_PKEY *pkey;

	if (fd < 0 || control_get(packet, len, KEYS_CONFIGURE, &k) < 0 ||
	    nkeys == nitems(keys))
		return -EBADMSG;
	pkey = load_key(fd);
	close(fd);
	if (pkey == NULL)
		log_fatal("a key that cannot be read");
	keys[nkeys].number = k.key;
	keys[nkeys++].pkey = pkey;
	return 0;
}

static void
limit(int resource)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(resource, &none) < 0)
		log_fatal_errno(-errno, "limits");
}

/* Nothing more is needed than the channel and a processor. */
static void
confine(void)
{
	int err;

	limit(RLIMIT_NPROC);
	limit(RLIMIT_CORE);
	if (prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_fatal_errno(-errno, "prctl");
	landlock_deny_all();
	err = policy_load();
	if (err < 0)
		log_fatal_errno(err, "system call filter");
}

static int
take_serve(const uint8_t *packet, size_t len, int fd)
{
	if (fd >= 0 || control_get(packet, len, KEYS_SERVE, NULL) < 0)
		return -EBADMSG;
	confine();
	state = KEYS_SERVING;
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
reply(const struct control_signed *answer)
{
	struct pollfd room = { .fd = CONTROL_FD, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, KEYS_SIGNED, answer);
	while ((err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0)) ==
	       -EAGAIN)
		poll(&room, 1, -1);
	buf_clear(&b);
	if (err < 0)
		exit(0); /* the front-end is gone */
}

/* A request that is no handshake comes from a front-end that is not ours any
 * more. */
static int
take_sign(const uint8_t *packet, size_t len, int fd)
{
	struct control_signed answer = { 0 };
	struct control_sign r;
	EVP_PKEY *pkey;
	int err;

	if (fd >= 0 || control_get(packet, len, KEYS_SIGN, &r) < 0)
		return -EBADMSG;
	pkey = find_key(r.key);
	if (pkey == NULL || sign_check(&r) < 0)
		return -EPERM;
	answer.serial = r.serial;
	err = sign_make(pkey, &r, &answer);
	if (err < 0)
		log_error(err, "signing with scheme 0x%04x", r.scheme);
	reply(&answer);
	return 0;
}

static const struct request {
	enum control_type type;
	unsigned when;
	int (*take)(const uint8_t *packet, size_t len, int fd);
} requests[] = {
	{ KEYS_CONFIGURE, KEYS_LOADING, take_key },
	{ KEYS_SERVE, KEYS_LOADING, take_serve },
	{ KEYS_SIGN, KEYS_SERVING, take_sign },
};

static void
take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(requests); i++) {
		if (requests[i].type != type)
			continue;
		if (!(requests[i].when & state) || nfds > 1 ||
		    requests[i].take(packet, len, nfds ? fds[0] : -1) < 0)
			break;
		return;
	}
	log_fatal("impossible request: %s", control_name(type));
}

int
main(void)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	struct pollfd ready = { .fd = CONTROL_FD, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	prctl(PR_SET_NAME, "execd-keys");
	log_init("execd-keys", LOG_LEVEL_INFO);
	/* Dies with its monitor even while the front-end lives on. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	for (;;) {
		n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds);
		if (n == -EAGAIN)
			poll(&ready, 1, -1);
		else if (n == 0 || n == -ECONNRESET)
			return 0;
		else if (n < 0)
			log_fatal_errno((int)n, "channel");
		else
			take(packet, (size_t)n, fds, nfds);
	}
}
