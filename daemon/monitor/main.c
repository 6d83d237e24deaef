/* SPDX-License-Identifier: ISC */
/*
 * execd-broker: reads the arguments of execd, which starts it; see execd(8).
 * Everything that can fail for a reason of the operator's fails here, before a
 * client.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "activation.h"
#include "config.h"
#include "crypto_memory.h"
#include "ctl.h"
#include "descriptors.h"
#include "dispose.h"
#include "doctor.h"
#include "drop.h"
#include "group_limits.h"
#include "log.h"
#include "monitor.h"
#include "notify.h"
#include "seqpacket.h"
#include "session_limit.h"
#include "session_usage.h"
#include "source.h"
#include "spawn_client.h"
#include "util.h"

static int
find_frontend_user(struct broker *m)
{
	struct passwd *pw;

	if (!m->root)
		return 0;
	pw = getpwnam(EXECD_USER);
	if (pw == NULL || pw->pw_uid == 0) {
		fputs("execd: the network front-end needs a user of its own, "
		      "and there is no `" EXECD_USER "`; create it with\n"
		      "  useradd --system --no-create-home --home-dir "
		      "/nonexistent --shell /usr/sbin/nologin " EXECD_USER "\n",
		    stderr);
		return EXIT_CONFIG;
	}
	m->frontend_uid = pw->pw_uid;
	m->frontend_gid = pw->pw_gid;
	return 0;
}

/* Whoever can connect becomes the session's user: that is said in words,
 * unless only this user's own machine can connect. A file has its words. */
static int
check_authentication(const struct broker *m)
{
	for (size_t i = 0; i < m->conf->nlisteners; i++) {
		const struct listener *l = m->conf->listeners[i];

		if (l->allow_unauthenticated == NULL || m->conf->path != NULL ||
		    m->options->allow_unauthenticated ||
		    l->kind == LISTENER_STDIO || (l->loopback && !m->root))
			continue;
		fprintf(stderr,
		    "execd: %s: whoever connects there would run "
		    "commands as %s; say --allow-unauthenticated if that is "
		    "meant\n",
		    l->url, l->allow_unauthenticated);
		return EXIT_USAGE;
	}
	return 0;
}

static int
open_audit(struct broker *m)
{
	const char *place;
	int err = audit_open(&m->conf->audit, &place);

	if (err == 0)
		return 0;
	log_error(err, "audit log %s", place);
	return err == -EACCES ? EXIT_PERMISSION : EXIT_FAILED;
}

static int
open_listeners(struct broker *m)
{
	int code = 0;

	for (size_t i = 0; i < m->conf->nlisteners && code == 0; i++) {
		struct listener *l = m->conf->listeners[i];

		code = listener_open(l, NULL);
		m->stdio |= l->kind == LISTENER_STDIO;
	}
	return code != 0 ? code : ctl_open(m->conf, NULL, m->options);
}

static int
load_configuration(struct broker *m)
{
	struct buf text;
	int code;

	m->conf = conf_load(m->options, &code);
	if (m->conf == NULL || !m->options->print)
		return code;
	conf_fill_sandbox(m->conf);
	buf_init(&text, SIZE_MAX);
	conf_print(m->conf, &text);
	fwrite(text.data, 1, text.len, stdout);
	buf_clear(&text);
	return 0;
}

static void
raise_descriptors(const struct broker *m)
{
	uint32_t sessions = m->conf->limits.max_sessions;
	uint64_t wanted = session_limit_wanted(sessions);
	uint64_t have = descriptors_raise(wanted);

	if (have < wanted)
		log_warn(0,
		    "%llu descriptors are allowed, %llu would be needed for "
		    "%u sessions",
		    (unsigned long long)have, (unsigned long long)wanted,
		    sessions);
}

/* The client is on 0 and 1 with stdio; from here on only the front-end's
 * copies lead there. */
static int
detach_stdio(const struct broker *m)
{
	_cleanup_close_ int null = -1;

	if (!m->stdio)
		return 0;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0) {
		fprintf(stderr, "execd: /dev/null: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return 0;
}

/* The same for every run on this machine, and nothing more: a hash of the
 * machine id (machine-id(5) asks not to show the id itself). */
static void
make_provider_id(struct broker *m)
{
	char text[256] = "execd provider ";
	size_t at = strlen(text);
	unsigned char digest[32];
	_cleanup_close_ int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text + at, 64) <= 0)
		gethostname(text + at, 64);
	EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
	at =
	    (size_t)snprintf(m->provider_id, sizeof(m->provider_id), "sha256:");
	for (size_t i = 0; i < sizeof(digest); i++)
		at += (size_t)snprintf(m->provider_id + at,
		    sizeof(m->provider_id) - at, "%02x", digest[i]);
}

static int
check_host(struct broker *m)
{
	char missing[PATH_MAX];
	int err = programs_open(&m->programs, missing);
	bool served = false;

	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", missing, strerror(-err));
		return EXIT_FAILED;
	}
	err = spawn_begin(&served);
	/* Whoever reads our standard output has read it. */
	m->announced = served && m->options->sessions == NULL;
	return err;
}

/* execd doctor [--user NAME] */
static int
run_doctor(int argc, char **argv)
{
	const char *user = NULL;
	struct programs programs;
	char missing[PATH_MAX];
	int err;

	if (argc == 4 && strcmp(argv[2], "--user") == 0) {
		user = argv[3];
	} else if (argc != 2) {
		fprintf(stderr, "usage: execd doctor [--user NAME]\n");
		return EXIT_USAGE;
	}
	log_init("execd", LOG_LEVEL_INFO);
	err = programs_open(&programs, missing);
	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", missing, strerror(-err));
		return EXIT_FAILED;
	}
	return doctor_run(&programs, user);
}

/* Who started us, or the socket of root's execd. */
static int
find_root(const struct broker *m)
{
	const char *path = m->options->sessions;
	bool started = spawn_find();
	int err;

	if (started != (path == NULL)) {
		fputs(started ? "execd: --sessions is said to execd-broker\n"
			      : "execd-broker: execd starts this program; "
				"systemd says --sessions PATH\n",
		    stderr);
		return EXIT_USAGE;
	}
	err = started ? 0 : spawn_connect(path);
	if (err == 0)
		return 0;
	fprintf(stderr, "execd: --sessions %s: %s\n", path, strerror(-err));
	return EXIT_FAILED;
}

static int
serve(struct broker *m)
{
	int code;

	if (m->root &&
	    group_limits_check(m->conf->identities, m->conf->nidentities) < 0)
		return EXIT_UNENFORCEABLE;
	drain_init(&m->drain);
	session_usage_init();
	session_adopt_all(m);
	ctl_serve(m);
	code = broker_run(m);
	log_info("stopped");
	return code;
}

int
main(int argc, char **argv)
{
	static struct options options;
	struct broker *m = &broker;
	int code, err;

	/* Executed by descriptor, it would be called after that. */
	prctl(PR_SET_NAME, "execd-broker");
	crypto_memory_init_secret();
	drop_visibility();
	if (argc > 1 && strcmp(argv[1], "doctor") == 0)
		return run_doctor(argc, argv);
	if (argc > 1 && strcmp(argv[1], "ctl") == 0)
		return ctl_main(argc, argv);
	code = options_parse(&options, argc, argv);
	if (code >= 0)
		return code;
	log_init(
	    "execd-broker", options.debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	seqpacket_set_drop(dispose);
	m->options = &options;
	m->root = geteuid() == 0;
	m->signals.fd = -1;
	m->relay.fd = -1;
	activation_init();
	notify_init();
	frontend_init(&m->frontend);
	helpers_init(&m->helpers);
	registry_init(&m->sessions);
	if ((code = load_configuration(m)) != 0)
		return code;
	if (options.check) {
		if (!options.print)
			conf_tell_ceilings(m->conf);
		return EXIT_STOPPED;
	}
	log_name_by_journal();
	if ((code = find_root(m)) != 0 || (code = find_frontend_user(m)) != 0 ||
	    (code = check_host(m)) != 0 || (code = open_audit(m)) != 0 ||
	    (code = open_listeners(m)) != 0 ||
	    (code = check_authentication(m)) != 0 ||
	    (code = detach_stdio(m)) != 0)
		return code;
	/* What was wrong until now was told to whoever started it. */
	log_never_block();
	conf_warn(m->conf);
	conf_tell_ceilings(m->conf);
	raise_descriptors(m);
	make_provider_id(m);
	err = source_init();
	if (err < 0) {
		log_error(err, "epoll");
		return EXIT_FAILED;
	}
	if (spawn_watch() < 0)
		return EXIT_FAILED;
	code = serve(m);
	if (!m->leaving)
		spawn_stop(code);
	return code;
}
