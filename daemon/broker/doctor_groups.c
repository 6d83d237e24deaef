/* SPDX-License-Identifier: ISC */
/*
 * What doctor says of control groups: of those that the sessions of a running
 * execd have, or of those that it can make itself.
 */
#include "broker_main.h"

#include <sys/mman.h>

#include "cgroup_claim.h"
#include "config.h"
#include "ctl_socket.h"
#include "group_limits.h"

#define ANSWER_MAX (1u << 20) /* of `status`, more than it ever has */

static struct cgroup_claim claim;
static char why[CGROUP_CLAIM_WHY_MAX];

/* The execd that runs here. */
static struct {
	bool asked;
	bool of_this_version;
	unsigned controllers; /* of its sessions */
} service;

/* --- a running execd ------------------------------------------------------ */

static unsigned
controllers_in(const struct json_value *list)
{
	unsigned found = 0;

	for (const struct json_value *v = list->first; v != NULL; v = v->next)
		for (size_t i = 0; i < GROUP_CONTROLLERS; i++)
			if (json_is(v, group_controllers[i]))
				found |= 1u << i;
	return found;
}

/* Returns 0 or -EPROTO: a release before this one does not tell. */
static int
take_status(const struct buf *answer)
{
	const struct json_value *result = NULL, *list = NULL, *version = NULL;
	struct json_doc doc;

	if (json_parse(&doc, (const char *)answer->data, answer->len) == 0)
		result = json_get(doc.root, "result");
	if (result != NULL) {
		list = json_get(result, "controllers");
		version = json_get(result, "version");
	}
	service.of_this_version =
	    version != NULL && json_is(version, EXECD_VERSION);
	service.asked = list != NULL && list->type == JSON_ARRAY;
	if (service.asked)
		service.controllers = controllers_in(list);
	json_clear(&doc);
	return service.asked ? 0 : -EPROTO;
}

static const char *
why_not_asked(int err)
{
	return err == -ENOTUNIQ ? "others run here, too"
	       : err == -EPROTO ? "it does not tell"
				: strerror(-err);
}

static void
ask_service(void)
{
	char path[CTL_PATH_MAX] = "";
	struct buf answer;
	int err;

	buf_init(&answer, ANSWER_MAX);
	err = ctl_ask_status(path, &answer);
	if (err == 0)
		err = take_status(&answer);
	buf_clear(&answer);
	if (err == 0)
		printf(
		    "         An execd runs here (%s), and was asked about the groups "
		    "of its sessions.\n",
		    path);
	else if (err != -ENOENT)
		printf(
		    "         An execd runs here (%s), and was not asked about the "
		    "groups of its sessions: %s.\n",
		    path, why_not_asked(err));
	if (err == 0 && !service.of_this_version)
		printf("without  version " EXECD_VERSION " in the execd that "
		       "runs here, which goes on as it was started; end the "
		       "upgrade (dpkg --configure -a), or restart it\n");
}

void
doctor_groups_begin(void)
{
	ask_service();
	if (!service.asked)
		cgroup_claim(&claim, getpid(), why);
}

void
doctor_groups_end(void)
{
	if (!service.asked)
		cgroup_claim_end(&claim);
}

/* --- a try ---------------------------------------------------------------- */

#define HELD_BYTES (32 << 20)
#define HELD_NAME  "doctor"

/* In a group with a limit: meets it. Ends with 0 if it holds as an error. */
static void __attribute__((noreturn)) meet_limit(unsigned controller)
{
	char *memory;

	if (controller == CGROUP_COUNTS_PIDS) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		_exit(pid < 0 ? 0 : EOPNOTSUPP);
	}
	if (controller != CGROUP_COUNTS_MEMORY)
		_exit(0); /* to be slow is not seen without a clock */
	memory = mmap(NULL, 4 * (size_t)HELD_BYTES, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		explicit_bzero(memory, 4 * (size_t)HELD_BYTES);
	_exit(EOPNOTSUPP);
}

/* Returns 0 if a process in the group met the limit, or -errno. */
static int
see_limit_hold(const struct cgroup *c, unsigned controller)
{
	int joins[CGROUP_HIERARCHIES], status = 0;
	int err = cgroup_open_joins(c, joins);
	pid_t pid = err < 0 ? -1 : fork();

	if (err == 0 && pid < 0)
		err = -errno;
	if (pid == 0) {
		err = cgroup_join(joins, false);
		if (err < 0)
			_exit(-err);
		meet_limit(controller);
	}
	cgroup_close_joins(joins);
	if (pid > 0 && waitpid(pid, &status, 0) < 0)
		err = -errno;
	if (err < 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		return err;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int
try_limit(unsigned controller)
{
	const struct cgroup_limits limits = {
		.pids = 1, .memory_bytes = HELD_BYTES, .cpu_percent = 50
	};
	struct cgroup c;
	int err = cgroup_make(&claim.base, HELD_NAME, &c);

	if (err == 0)
		err = cgroup_limit(&c, &limits, controller);
	if (err == 0)
		err = see_limit_hold(&c, controller);
	return err;
}

int
doctor_groups_try(unsigned controller)
{
	unsigned there =
	    service.asked ? service.controllers : claim.controllers;

	if (service.asked ? there == 0 : !cgroup_is_open(&claim.base))
		return ENOENT;
	if (controller == 0)
		return 0;
	if (!(there & controller))
		return EOPNOTSUPP;
	return service.asked ? 0 : -try_limit(controller);
}

/* --- words ---------------------------------------------------------------- */

const char *
doctor_groups_of(void)
{
	return service.asked ? ", in the execd that runs here"
			     : ", where doctor was started";
}

const char *
doctor_groups_advise(int err)
{
	static char text[CGROUP_CLAIM_WHY_MAX + 256];

	snprintf(text, sizeof(text),
	    "%s; where execd is started like this, no limit of a session, a "
	    "command or an identity holds; the units of execd have Delegate=yes, "
	    "and so has `systemd-run --user --scope -p Delegate=yes execd`",
	    service.asked ? "its log says why" : why);
	return text;
}
