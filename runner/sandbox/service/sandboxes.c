/* SPDX-License-Identifier: ISC */
#include "sandboxes.h"

#include "command_filter.h"
#include "descriptors.h"
#include "landlock_only.h"
#include "log_limit.h"

uint64_t
sandboxes_open_files(const struct sandbox_limits *l)
{
	uint64_t most = descriptors_of_commands();

	return l->open_files > 0 && l->open_files < most ? l->open_files : most;
}

static struct sandbox_options
options_of(const struct sandbox_host *host, const struct sandbox_limits *l)
{
	return (struct sandbox_options){
		.parent_death_signal = host->parent_death_signal,
		.guards_ports = host->own_ports >= 0,
		.unix_allow = l->unix_sockets == SANDBOX_UNIX_ALLOW,
		.allow_32bit = l->allow_32bit,
		.allow_setid = l->allow_setid,
		.allow_nested_userns = l->allow_nested_userns,
		.try_proc = l->landlock_only && host->parent_death_signal,
		.shm_bytes = l->shm_bytes,
		.open_files = sandboxes_open_files(l),
		.open_files_soft = descriptors_soft(),
		.file_bytes = l->file_bytes,
		.cpu_s = host->cpu_s,
		/* Used where control groups do not exist. */
		.processes =
		    host->controllers & CGROUP_COUNTS_PIDS ? 0 : l->pids,
		.memory_bytes = host->controllers & CGROUP_COUNTS_MEMORY
				    ? 0
				    : l->memory_bytes,
	};
}

/* Returns the controllers of limits that no control group can enforce. */
static unsigned
uncounted(const struct sandboxes *sb)
{
	const struct sandbox_limits *l = &sb->ceiling.limits;
	unsigned limited =
	    (l->pids > 0 ? CGROUP_COUNTS_PIDS : 0) |
	    (l->memory_bytes > 0 ? CGROUP_COUNTS_MEMORY : 0) |
	    (l->cpu_percent > 0 || l->cpu_weight > 0 ? CGROUP_COUNTS_CPU : 0) |
	    (l->io_weight > 0 ? CGROUP_COUNTS_IO : 0);

	return limited & ~sb->controllers;
}

void
sandboxes_limit(struct sandboxes *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits)
{
	struct sandbox_options options = options_of(host, limits);

	sandbox_context_accept_launch(limits->accept_launch);
	ceiling_clear(&sb->ceiling);
	ceiling_init(&sb->ceiling, limits, host->home ? host->home : "/");
	network_list_clear(&sb->everything);
	if (!limits->network_host)
		network_list_everything(&sb->everything, limits->network_allow);
	/* What every control group counts needs no mention. */
	sb->told = uncounted(sb) == 0;
	sb->plain = limits->unsandboxed && !ceiling_has_bounds(&sb->ceiling) &&
		    (sb->told || !limits->require_groups);
	sandbox_pool_change(&sb->pool, &options);
	sb->pool.own_ports = host->own_ports;
	sb->pool.open_port = limits->open_port;
}

void
sandboxes_init(struct sandboxes *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits)
{
	static char *const none[] = { NULL };
	static const struct sandbox_options later; /* sandboxes_limit() */

	sb->home = host->home;
	sb->tmpdir = host->tmpdir;
	sb->controllers = host->controllers;
	sb->told_landlock_only = false;
	sb->single_user = host->parent_death_signal;
	sb->lists = sb->single_user ? placeholders_path() : NULL;
	sb->no_landlock = command_landlock_abi() == 0;
	sandbox_pool_init(&sb->pool, host->base, host->userns, host->program,
	    &later, host->give_up, host->owner);
	sb->pool.homes = host->homes != NULL ? host->homes : none;
	sb->pool.on_replaced = host->on_replaced;
	sandboxes_limit(sb, host, limits);
}

bool
sandboxes_permit_none(const struct sandboxes *sb)
{
	return sb->ceiling.limits.unsandboxed;
}

int
sandboxes_refuse(const char *why, char *error)
{
	snprintf(error, ARGS_ERROR_MAX, SANDBOX_UNENFORCEABLE ": %.400s",
	    *why != '\0' ? why : "its process ended before it was ready");
	return -EINVAL;
}

/* --- name resolution ---------------------------------------------------- */

#define RESOLVER_FILE "/etc/resolv.conf"

/*
 * Tells whether the path is denied because it lies below a path of the
 * operator's hide list.
 */
static bool
is_hidden(const struct ceiling *c, const struct plan *plan, const char *path)
{
	for (const char **hide = c->hide; *hide != NULL; hide++)
		if (path_lies_in(path, *hide) && strcmp(path, *hide) != 0)
			return plan_access(plan, path) == SANDBOX_DENY;
	return false;
}

/*
 * On many hosts the resolver's file is below /run, which is hidden, and a
 * network is of little use without it. With a network, this one file is made
 * readable again; with a list of hosts, the command's own is mounted over it.
 * Returns true with a new vector in context->entries, which the
 * caller frees along with *target; false if nothing changed.
 */
static bool
reopen_resolver(const struct ceiling *c, const struct plan *plan,
    struct sandbox_context *context, bool listed, char **target)
{
	struct sandbox_entry *entries;
	size_t n = context->nentries;

	*target =
	    (context->network_enabled || listed) && !context->files_unrestricted
		? realpath(RESOLVER_FILE, NULL)
		: NULL;
	if (*target == NULL || !is_hidden(c, plan, *target))
		return false;
	entries = xcalloc(n + 1, sizeof(*entries));
	memcpy(entries, context->entries, n * sizeof(*entries));
	entries[n] = (struct sandbox_entry){ .access = SANDBOX_READ,
		.kind = SANDBOX_PATH,
		.path = { .path = *target } };
	context->entries = entries;
	context->nentries = n + 1;
	return true;
}

/* --- plans -------------------------------------------------------------- */

/*
 * Most hosts have this directory. On others the first X server makes it and
 * nobody removes it, and where the network is the host's an X server needs one
 * that its sandbox can cover. Returns true if it is new.
 */
static bool
make_x11(const struct plan *plan)
{
	return plan->network && plan->base != PLAN_BASE_WRITE &&
	       plan_access(plan, "/tmp") == SANDBOX_WRITE &&
	       mkdir(RESOLVE_X11, 01777) == 0 && chmod(RESOLVE_X11, 01777) == 0;
}

static int
make_plan(struct sandboxes *sb, const struct sandbox_context *granted,
    const struct sandbox_request *asked, const char *tmpdir, struct plan *plan,
    char *error)
{
	const struct ceiling *c = &sb->ceiling;
	struct sandbox_context context = *granted;
	_cleanup_free_ char *resolver = NULL;
	const struct resolve_request r = {
		.context = &context,
		.cwd = asked->cwd,
		.tmpdir = tmpdir,
		.private_tmp =
		    c->limits.tmp == SANDBOX_TMP_PRIVATE || sb->no_landlock,
		.private_tmpdir =
		    c->limits.tmpdir == SANDBOX_TMP_PRIVATE || sb->no_landlock,
		.home = sb->home,
		.protected_names = c->protected_names,
		.deny_read = c->deny_read,
		.hide = c->hide,
		/* Without a view nothing can be denied; `hide` does it. */
		.lists = c->limits.landlock_only ? NULL : sb->lists,
		.nested_git_depth = c->limits.nested_git == SANDBOX_NESTED_OFF
					? 0
					: c->limits.nested_git_depth,
		.no_scan = sb->defers && sb->tell == NULL,
	};
	int err = resolve(plan, &r, &disk_view, error);

	if (err == 0 && asked->cwd != NULL && !r.private_tmp &&
	    make_x11(plan)) {
		plan_clear(plan);
		err = resolve(plan, &r, &disk_view, error);
	}
	if (err == 0 && reopen_resolver(c, plan, &context, asked->hosts != NULL,
			    &resolver)) {
		plan_clear(plan);
		err = resolve(plan, &r, &disk_view, error);
		free(context.entries);
	}
	if (err < 0 && err != -EINVAL && err != -EINPROGRESS &&
	    err != -ESTALE) {
		log_error(err, "sandbox: resolving the policy");
		return sandboxes_refuse("resolving the policy", error);
	}
	return err;
}

/*
 * Makes a plan within the ceiling. A context that was cut down is resolved once
 * more.
 */
static int
plan_grant(struct sandboxes *sb, struct ceiling_grant *g,
    const struct sandbox_request *asked, const char *tmpdir, struct plan *plan,
    char *error)
{
	int err = -EAGAIN;

	for (int i = 0; i < 2 && err == -EAGAIN; i++) {
		plan_clear(plan);
		err = make_plan(sb, &g->context, asked, tmpdir, plan, error);
		if (err == 0)
			err = ceiling_judge_plan(
			    &sb->ceiling, g, tmpdir, plan, error);
	}
	return err == -EAGAIN ? sandboxes_refuse("the view", error) : err;
}

/* Logs once what the operator gave up by permitting this mode. */
static void
tell_landlock_only(struct sandboxes *sb, const struct sandbox *n)
{
	if (sb->told_landlock_only)
		return;
	sb->told_landlock_only = true;
	log_warn(0,
	    "landlock-only: %s, so that sandboxes of this "
	    "session have Landlock (ABI %u) and seccomp alone: commands may "
	    "change modes and times of every file of their user, and see %s"
	    "his processes",
	    n->no_proc ? "no new /proc can be mounted here"
		       : "no user namespaces",
	    n->landlock_abi, n->landlock_abi < 6 ? "and signal " : "");
}

/*
 * A sandbox without namespaces may have been built for another request, so each
 * request checks whether it suits.
 */
static int
check_namespaces(struct sandboxes *sb, const struct sandbox *n,
    bool landlock_only, const char *why, char *error)
{
	if (!n->landlock_only)
		return 0;
	if (landlock_only) {
		tell_landlock_only(sb, n);
		return 0;
	}
	log_error(0, "sandbox: landlock-only: %s", why);
	return sandboxes_refuse("a new user namespace", error);
}

static int
check_landlock(struct sandboxes *sb, const struct sandbox *n, char *error)
{
	unsigned least = sb->ceiling.limits.landlock_min_abi;

	if (sb->required && least == 0)
		least = 1;
	if (n->landlock_abi >= least)
		return 0;
	log_error(0, "sandbox: Landlock ABI %u, at least %u is required",
	    n->landlock_abi, least);
	return sandboxes_refuse("Landlock", error);
}

#define PLAN_TRIES 3

static int
get_sandbox(struct sandboxes *sb, struct plan *plan, bool check,
    struct sandbox **sandbox, char *error)
{
	const struct landlock_only q = { .limits = &sb->ceiling.limits,
		.plan = plan,
		.single_user = sb->single_user,
		.required = sb->required };
	char why[LANDLOCK_ONLY_WHY_MAX];
	bool landlock_only = landlock_only_suits(&q, why);
	int err = sandbox_get(&sb->pool, plan, check, landlock_only, sandbox);

	if (err < 0) {
		if (sb->pool.no_namespaces && why[0] != '\0')
			log_error(0, "sandbox: landlock-only: %s", why);
		sandboxes_refuse(sb->pool.step, error);
		return err;
	}
	err = check_namespaces(sb, *sandbox, landlock_only, why, error);
	/* A file helper reaches nothing in any case. */
	if (err == 0 && !check && (*sandbox)->plan.hosts != NULL &&
	    !(*sandbox)->loopback)
		err = sandboxes_refuse(
		    "a list of hosts needs a network namespace", error);
	return err < 0 ? err : check_landlock(sb, *sandbox, error);
}

/*
 * Checks for limits that no control group can enforce. They are refused if they
 * are required, and otherwise logged once.
 */
static int
check_groups(struct sandboxes *sb, char *error)
{
	const struct sandbox_limits *l = &sb->ceiling.limits;
	const struct {
		unsigned controller;
		const char *what;
	} kinds[] = {
		{ CGROUP_COUNTS_PIDS, "processes" },
		{ CGROUP_COUNTS_MEMORY, "memory" },
		{ CGROUP_COUNTS_CPU, "processor time" },
		{ CGROUP_COUNTS_IO, "input and output" },
	};
	unsigned missing = uncounted(sb);
	bool must = l->require_groups || sb->required, fine = true;

	for (size_t i = 0; i < nitems(kinds); i++) {
		if (!(missing & kinds[i].controller))
			continue;
		fine &= !must;
		if (must)
			log_error(0,
			    "a control group is required and none counts %s",
			    kinds[i].what);
		else if (!sb->told)
			log_warn(0,
			    "no control group counts the %s of commands",
			    kinds[i].what);
	}
	sb->told |= !must;
	return fine ? 0 : sandboxes_refuse("control groups", error);
}

/*
 * Tells whether the user's own permissions are enough and no sandbox is needed.
 * A file operation needs nothing but files. The operator's denials apply if
 * every request must have a policy.
 */
static bool
is_direct(const struct sandboxes *sb, const struct sandbox_context *granted,
    const char *cwd)
{
	return granted->unrestricted ||
	       (cwd == NULL && granted->files_unrestricted && !sb->required &&
		   sandboxes_permit_none(sb));
}

/*
 * With a list of hosts the sandbox has a network namespace of its own, which
 * the proxy leads out of. A network that the operator took away stays so.
 * Returns the request as it is from then on.
 */
static struct sandbox_request
narrow_network(const struct sandboxes *sb, struct ceiling_grant *g,
    const struct sandbox_request *r)
{
	struct sandbox_request narrowed = *r;

	if (!g->context.network_enabled)
		narrowed.hosts = NULL;
	else if (r->hosts == NULL && sb->everything.text != NULL &&
		 !g->context.unrestricted)
		narrowed.hosts = &sb->everything;
	if (r->hosts != NULL || narrowed.hosts != NULL)
		g->context.network_enabled = g->context.unrestricted = false;
	return narrowed;
}

/* Looks at the disk, and changes nothing of the session. */
static void
decide(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox_verdict *v)
{
	const char *tmpdir = sb->ceiling.limits.tmpdir == SANDBOX_TMP_REQUEST
				 ? r->tmpdir
				 : sb->tmpdir;
	struct sandbox_request narrowed;
	struct ceiling_grant grant;

	*v = (struct sandbox_verdict){ 0 };
	v->err = ceiling_judge(
	    &sb->ceiling, r->asked, r->reads, r->cwd, &grant, v->error);
	narrowed = narrow_network(sb, &grant, r);
	v->direct = v->err == 0 && is_direct(sb, &grant.context, r->cwd);
	if (v->err == 0 && !v->direct)
		v->err = plan_grant(
		    sb, &grant, &narrowed, tmpdir, &v->plan, v->error);
	if (narrowed.hosts != NULL)
		v->plan.hosts = xstrdup(narrowed.hosts->text);
	v->clamped = grant.clamped;
	ceiling_grant_clear(&grant);
}

/* One try, with what was decided already, or else what is decided now. */
static int
try(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox **sandbox, char *error)
{
	struct sandbox_verdict own = { 0 };
	struct sandbox_verdict *v = sb->made != NULL ? sb->made : &own;
	int err;

	if (v == &own)
		decide(sb, r, v);
	sb->made = NULL;
	sb->clamped = v->clamped;
	sb->ceiling.told |= v->clamped != 0;
	snprintf(error, ARGS_ERROR_MAX, "%s", v->error);
	err = v->err;
	if (err == 0 && !v->direct)
		err = get_sandbox(sb, &v->plan, r->cwd == NULL, sandbox, error);
	plan_clear(&v->plan);
	return err;
}

/*
 * Names in /tmp come and go, for example placeholders of other users. If a path
 * was changed between the plan and the view, both are made again. At last the
 * error names it.
 */
static int
find(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox **sandbox, char *error)
{
	const struct sandbox_context *asked = r->asked;
	bool built = sb->made != NULL;
	int err;

	*sandbox = NULL;
	sb->clamped = 0;
	sb->required = asked != NULL && asked->required;
	if (asked != NULL && asked->managed_network && r->hosts == NULL)
		return sandboxes_refuse("managed network", error);
	err = check_groups(sb, error);
	if (err < 0)
		return err;
	err = -ESTALE;
	for (int i = 0; i < PLAN_TRIES && err == -ESTALE; i++)
		err =
		    built && i > 0 ? -EINPROGRESS : try(sb, r, sandbox, error);
	if (err == -ESTALE && *error == '\0')
		sandboxes_refuse("a view that changes", error);
	return err == -ESTALE ? -EINVAL : err;
}

int
sandboxes_find(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox **sandbox, char *error)
{
	struct sandbox_verdict v;
	int err;

	if (sb->tell != NULL) {
		sb->required = r->asked != NULL && r->asked->required;
		decide(sb, r, &v);
		sb->tell(&v);
	}
	err = find(sb, r, sandbox, error);
	if (err < 0 && err != -EINPROGRESS &&
	    log_permits(LOG_DECISION, "sandbox", error))
		log_warn(0, "refused: %s", error);
	return err;
}
