/*
 * execd: the monitor. Root, or one ordinary user; see execd(8). Everything
 * that can fail for a reason of the operator's fails here, before a client.
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
#include "descriptors.h"
#include "dispose.h"
#include "doctor.h"
#include "drop.h"
#include "log.h"
#include "monitor.h"
#include "notify.h"
#include "quota.h"
#include "runner_start.h"
#include "seqpacket.h"
#include "session_limit.h"
#include "source.h"
#include "starter.h"
#include "util.h"

static int
find_frontend_user(struct monitor *m)
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
check_authentication(const struct monitor *m)
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
open_audit(struct monitor *m)
{
	const char *place;
	int err = audit_open(&m->conf->audit, &place);

	if (err == 0)
		return 0;
	log_error(err, "audit log %s", place);
	return err == -EACCES ? EXIT_PERMISSION : EXIT_FAILED;
}

static int
open_listeners(struct monitor *m)
{
	int code = 0;

	for (size_t i = 0; i < m->conf->nlisteners && code == 0; i++) {
		struct listener *l = m->conf->listeners[i];

		code = listener_open(l, NULL);
		m->stdio |= l->kind == LISTENER_STDIO;
	}
	return code;
}

static int
load_configuration(struct monitor *m)
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
raise_descriptors(const struct monitor *m)
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
detach_stdio(const struct monitor *m)
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
make_provider_id(struct monitor *m)
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
check_host(struct monitor *m)
{
	char missing[PATH_MAX];
	const char *step;
	int err = programs_open(&m->programs, missing);

	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", missing, strerror(-err));
		return EXIT_FAILED;
	}
	if (m->options->starter != NULL)
		return starter_connect(m->options->starter);
	if (m->root && (err = runner_probe(&step)) < 0) {
		fprintf(stderr,
		    "execd: this host does not give a session "
		    "%s: %s\n",
		    step, strerror(-err));
		return EXIT_UNENFORCEABLE;
	}
	if (!m->root && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		fprintf(stderr, "execd: subreaper: %s\n", strerror(errno));
		return EXIT_UNENFORCEABLE;
	}
	return 0;
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

/* execd starter */
static int
run_starter(struct monitor *m)
{
	char missing[PATH_MAX];
	int err;

	prctl(PR_SET_NAME, "execd-starter");
	log_init("execd-starter", LOG_LEVEL_INFO);
	log_name_by_journal();
	err = programs_open(&m->programs, missing);
	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", missing, strerror(-err));
		return EXIT_FAILED;
	}
	log_never_block();
	return starter_serve(m);
}

int
main(int argc, char **argv)
{
	static struct options options;
	struct monitor *m = &monitor;
	int code, err;

	crypto_memory_init_secret();
	drop_visibility();
	if (argc > 1 && strcmp(argv[1], "doctor") == 0)
		return run_doctor(argc, argv);
	if (argc == 2 && strcmp(argv[1], "starter") == 0)
		return run_starter(m);
	code = options_parse(&options, argc, argv);
	if (code >= 0)
		return code;
	log_init("execd", options.debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
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
	if ((code = find_frontend_user(m)) != 0 ||
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
	if (starter_watch() < 0)
		return EXIT_FAILED;
	if (!starter_is_used())
		quota_init();
	if (m->root &&
	    quota_check(m->conf->identities, m->conf->nidentities) < 0)
		code = EXIT_UNENFORCEABLE;
	else
		code = monitor_run(m);
	runner_template_stop_all();
	quota_clear();
	log_info("stopped");
	return code;
}
