/* SPDX-License-Identifier: ISC */
#include "sandbox_report.h"

#include "view.h"

/* Tells whether it is what a policy with a network has where that is not the
 * host's. */
static bool
is_public(const struct sandboxes *sb, const struct plan *plan)
{
	return plan->hosts != NULL && sb->everything.text != NULL &&
	       strcmp(plan->hosts, sb->everything.text) == 0;
}

static bool
has_own_shm(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (strcmp(plan->mounts[i].path, "/dev/shm") == 0)
			return plan_is_own_dev(&plan->mounts[i]);
	return view_has_dev(plan);
}

void
sandbox_report_fill(struct sandbox_report *r, const struct sandboxes *sb,
    const struct sandbox_context *asked, const struct sandbox *sandbox)
{
	const struct sandbox_limits *l = &sb->ceiling.limits;
	const struct sandbox_group most = sandbox_limits_smallest(l);

	*r = (struct sandbox_report){
		.asked = asked != NULL,
		.clamped = sb->clamped,
	};
	if (asked != NULL) {
		r->asked_type = asked->type;
		r->asked_files = !asked->files_unrestricted;
		r->asked_network = !asked->network_enabled;
	}
	if (sandbox == NULL)
		return;
	r->enforced = true;
	r->files = sandbox->plan.base != PLAN_BASE_WRITE;
	r->network = !sandbox->plan.network;
	r->listed = sandbox->plan.hosts != NULL;
	r->proc = view_has_proc(&sandbox->plan) && !sandbox->landlock_only;
	r->controllers = sb->controllers;
	r->landlock_abi = sandbox->landlock_empty ? 0 : sandbox->landlock_abi;
	r->landlock_only = sandbox->landlock_only;
	r->loopback = sandbox->loopback;
	r->open = is_public(sb, &sandbox->plan);
	r->unix_sockets = l->unix_sockets == SANDBOX_UNIX_ALLOW ? "all"
			  : sandbox->own_unix			? "own"
								: "none";
	/* A control group holds the smallest of the limits above it, too. */
	r->pids = sb->controllers & CGROUP_COUNTS_PIDS ? most.pids : l->pids;
	r->memory_bytes = sb->controllers & CGROUP_COUNTS_MEMORY
			      ? most.memory_bytes
			      : l->memory_bytes;
	/* Nothing else can limit processor time. */
	if (sb->controllers & CGROUP_COUNTS_CPU)
		r->cpu_percent = l->cpu_percent;
	r->open_files = sb->pool.options.open_files;
	r->file_bytes = l->file_bytes;
	if (!sandbox->landlock_only && has_own_shm(&sandbox->plan))
		r->shm_bytes = l->shm_bytes;
}

static void
write_limit(struct json_writer *w, const char *key, uint64_t value)
{
	json_key(w, key);
	if (value == 0)
		json_null(w);
	else
		json_u64(w, value);
}

static void
write_asked(struct json_writer *w, const struct sandbox_report *r)
{
	static const char *const types[] = {
		[SANDBOX_MANAGED] = "managed",
		[SANDBOX_DISABLED] = "disabled",
		[SANDBOX_EXTERNAL] = "external",
	};

	json_key(w, "asked");
	if (!r->asked) {
		json_null(w);
		return;
	}
	json_begin(w, '{');
	json_key_cstring(w, "type", types[r->asked_type]);
	json_key_cstring(
	    w, "fileSystem", r->asked_files ? "restricted" : "unrestricted");
	json_key_cstring(
	    w, "network", r->asked_network ? "restricted" : "enabled");
	json_end(w, '}');
}

/* Writes what the operator's ceiling cut down. */
static void
write_clamped(struct json_writer *w, const struct sandbox_report *r)
{
	if (r->clamped == 0)
		return;
	json_key_begin(w, "clamped", '[');
	for (enum ceiling_limit i = 0; i < CEILING_LIMITS; i++)
		if (r->clamped & 1u << i)
			json_cstring(w, ceiling_word(i));
	json_end(w, ']');
}

/*
 * Every layer listed here was confirmed while the command was started: a layer
 * that cannot be enforced is an error.
 */
static void
write_layers(struct json_writer *w, const struct sandbox_report *r)
{
	bool namespaces = !r->landlock_only;
	const struct {
		const char *name;
		bool there;
	} layers[] = {
		{ "userNamespace", namespaces },
		{ "mountNamespace", namespaces },
		{ "pidNamespace", namespaces },
		{ "ipcNamespace", namespaces },
		{ "utsNamespace", namespaces },
		{ "cgroupNamespace", namespaces },
		{ "networkNamespace", r->network && namespaces },
		{ "readOnlyView", r->files && namespaces },
		{ "ownProc", r->proc },
		{ "noCapabilities", true },
		{ "noNewPrivs", true },
		{ "landlock", r->landlock_abi > 0 },
		{ "seccomp", true },
		{ "controlGroup", r->controllers != 0 },
	};

	json_key_begin(w, "layers", '[');
	for (size_t i = 0; i < nitems(layers); i++)
		if (layers[i].there)
			json_cstring(w, layers[i].name);
	json_end(w, ']');
}

/*
 * Writes the limits that a control group applies to a command as a whole.
 * Others apply to each of its processes.
 */
static void
write_counted(struct json_writer *w, const struct sandbox_report *r)
{
	const struct {
		unsigned controller;
		uint64_t limit;
		const char *name;
	} limits[] = {
		{ CGROUP_COUNTS_PIDS, r->pids, "processes" },
		{ CGROUP_COUNTS_MEMORY, r->memory_bytes, "memoryBytes" },
		{ CGROUP_COUNTS_CPU, r->cpu_percent, "cpuPercent" },
	};

	json_key_begin(w, "controlGroupLimits", '[');
	for (size_t i = 0; i < nitems(limits); i++)
		if (limits[i].limit > 0 &&
		    r->controllers & limits[i].controller)
			json_cstring(w, limits[i].name);
	json_end(w, ']');
}

enum control_reach
sandbox_report_reach(const struct sandbox_report *r)
{
	if (r->open)
		return REACH_PUBLIC;
	if (r->listed)
		return REACH_LISTED;
	return r->network ? REACH_RESTRICTED : REACH_ENABLED;
}

static void
write_enforced(struct json_writer *w, const struct sandbox_report *r)
{
	json_key(w, "enforced");
	if (!r->enforced) {
		json_null(w);
		return;
	}
	json_begin(w, '{');
	write_layers(w, r);
	json_key_u64(w, "landlockAbi", r->landlock_abi);
	json_key_cstring(
	    w, "fileSystem", r->files ? "restricted" : "unrestricted");
	json_key_cstring(
	    w, "network", control_reach_name(sandbox_report_reach(r)));
	json_key_bool(w, "loopback", r->loopback);
	if (r->listed)
		json_key_bool(w, "names", r->names);
	json_key_cstring(w, "unixSockets", r->unix_sockets);
	json_key_begin(w, "limits", '{');
	write_limit(w, "processes", r->pids);
	write_limit(w, "memoryBytes", r->memory_bytes);
	write_limit(w, "cpuPercent", r->cpu_percent);
	write_limit(w, "openFiles", r->open_files);
	write_limit(w, "fileBytes", r->file_bytes);
	write_limit(w, "shmBytes", r->shm_bytes);
	json_end(w, '}');
	write_counted(w, r);
	if (r->cwd != NULL)
		json_key_path(w, "cwd", r->cwd);
	json_end(w, '}');
}

void
sandbox_report_write(struct json_writer *w, const struct sandbox_report *r)
{
	json_key_begin(w, "sandbox", '{');
	write_asked(w, r);
	write_clamped(w, r);
	write_enforced(w, r);
	json_end(w, '}');
}
