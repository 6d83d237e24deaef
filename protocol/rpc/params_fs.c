/* SPDX-License-Identifier: ISC */
/*
 * Params of the fs/ methods (doc/protocol.md section 10).
 */
#include <string.h>

#include "params.h"

static void
begin(struct args *a, struct rpc_message *m, union method_params *p,
    const char *name)
{
	memset(&p->fs, 0, sizeof(p->fs));
	args_init(a, &m->doc, m->params, name);
}

/* `type` is what the peer calls a context, in its errors. */
static int
end_with(struct args *a, union method_params *p, char *error, const char *type)
{
	const struct json_value *v = args_opt_object(a, "sandbox", type);

	p->fs.has_sandbox = v != NULL;
	if (v != NULL)
		sandbox_context_decode(a, v, &p->fs.sandbox);
	return params_end(a, error);
}

static int
end(struct args *a, union method_params *p, char *error)
{
	return end_with(a, p, error, "WireFileSystemSandboxContext");
}

static int
path_only(struct rpc_message *m, union method_params *p, char *error,
    const char *name)
{
	struct args a;

	begin(&a, m, p, name);
	p->fs.path = args_path(&a, "path");
	return end(&a, p, error);
}

/* `details` is an addition of execd: the answer has more members than the
 * peer's. */
static int
path_details(struct rpc_message *m, union method_params *p, char *error,
    const char *name)
{
	struct args a;

	begin(&a, m, p, name);
	p->fs.path = args_path(&a, "path");
	p->fs.details = args_opt_bool(&a, "details", false);
	return end(&a, p, error);
}

int
params_fs_read_file(struct rpc_message *m, union method_params *p, char *error)
{
	return path_only(m, p, error, "WireFsReadFileParams");
}

int
params_fs_get_metadata(
    struct rpc_message *m, union method_params *p, char *error)
{
	return path_details(m, p, error, "WireFsGetMetadataParams");
}

int
params_fs_canonicalize(
    struct rpc_message *m, union method_params *p, char *error)
{
	return path_only(m, p, error, "WireFsCanonicalizeParams");
}

int
params_fs_read_directory(
    struct rpc_message *m, union method_params *p, char *error)
{
	return path_details(m, p, error, "WireFsReadDirectoryParams");
}

/* Invalid base64 gives -32600 here and nowhere else (quirk Q23), because it is
 * decoded only when the file is written. */
int
params_fs_write_file(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "WireFsWriteFileParams");
	p->fs.path = args_path(&a, "path");
	p->fs.data = args_string(&a, "dataBase64");
	return end(&a, p, error);
}

int
params_fs_create_directory(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "WireFsCreateDirectoryParams");
	p->fs.path = args_path(&a, "path");
	p->fs.recursive = args_opt_bool(&a, "recursive", true);
	return end(&a, p, error);
}

int
params_fs_remove(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "WireFsRemoveParams");
	p->fs.path = args_path(&a, "path");
	p->fs.recursive = args_opt_bool(&a, "recursive", true);
	p->fs.force = args_opt_bool(&a, "force", true);
	return end(&a, p, error);
}

int
params_fs_copy(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "WireFsCopyParams");
	p->fs.path = args_path(&a, "sourcePath");
	p->fs.destination = args_path(&a, "destinationPath");
	p->fs.recursive = args_bool(&a, "recursive");
	return end(&a, p, error);
}

int
params_fs_move(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsMoveParams");
	p->fs.path = args_path(&a, "sourcePath");
	p->fs.destination = args_path(&a, "destinationPath");
	p->fs.overwrite = args_opt_bool(&a, "overwrite", false);
	return end(&a, p, error);
}

int
params_fs_chmod(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsChmodParams");
	p->fs.path = args_path(&a, "path");
	p->fs.mode = (uint16_t)args_range(&a, "mode", 0, FILE_MODE_MAX);
	return end(&a, p, error);
}

int
params_fs_set_times(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsSetTimesParams");
	p->fs.path = args_path(&a, "path");
	p->fs.modified_ms = args_range(&a, "modifiedAtMs", 0, FILE_TIME_MAX);
	return end(&a, p, error);
}

/* The target is stored in the link as text. It is not resolved for this
 * request. */
int
params_fs_symlink(struct rpc_message *m, union method_params *p, char *error)
{
	struct slice *target = &p->fs.target;
	struct args a;

	begin(&a, m, p, "FsSymlinkParams");
	p->fs.path = args_path(&a, "path");
	*target = args_string(&a, "target");
	if (args_end(&a) == 0 &&
	    (target->len == 0 || memchr(target->ptr, '\0', target->len)))
		args_fail(&a, "target must be text without a NUL byte");
	return end(&a, p, error);
}

static void
decode_walk(
    struct args *a, const struct json_value *v, struct fs_walk_options *w)
{
	struct args in;

	args_init(&in, a->doc, v, "FsWalkOptions");
	w->max_depth = args_u64(&in, "maxDepth");
	w->max_directories = args_u64(&in, "maxDirectories");
	w->max_entries = args_u64(&in, "maxEntries");
	w->follow_symlinks = args_bool(&in, "followDirectorySymlinks");
	w->prune_hidden =
	    args_default_bool(&in, "pruneHiddenDirectories", false);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

int
params_fs_walk(struct rpc_message *m, union method_params *p, char *error)
{
	const struct json_value *options;
	struct args a;

	begin(&a, m, p, "WireFsWalkParams");
	p->fs.path = args_path(&a, "path");
	options = args_object(&a, "options", "FsWalkOptions");
	if (options != NULL)
		decode_walk(&a, options, &p->fs.walk);
	return end(&a, p, error);
}

int
params_fs_open(struct rpc_message *m, union method_params *p, char *error)
{
	static const char *const modes[] = { "read", "replace", NULL };
	struct args a;

	begin(&a, m, p, "WireFsOpenParams");
	p->fs.handle_id = args_string(&a, "handleId");
	p->fs.path = args_path(&a, "path");
	p->fs.replace = args_default_enum(&a, "mode", modes, 0) == 1;
	return end(&a, p, error);
}

int
params_fs_read_block(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsReadBlockParams");
	p->fs.handle_id = args_string(&a, "handleId");
	p->fs.offset = args_u64(&a, "offset");
	p->fs.len = args_u64(&a, "len");
	return params_end(&a, error);
}

int
params_fs_write_block(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsWriteBlockParams");
	p->fs.handle_id = args_string(&a, "handleId");
	p->fs.offset = args_u64(&a, "offset");
	p->fs.data = args_base64(&a, "chunk");
	return params_end(&a, error);
}

int
params_fs_close(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsCloseParams");
	p->fs.handle_id = args_string(&a, "handleId");
	return params_end(&a, error);
}

int
params_fs_watch(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsWatchParams");
	p->fs.watch_id = args_u64(&a, "watchId");
	p->fs.path = args_path(&a, "path");
	return end(&a, p, error);
}

int
params_fs_unwatch(struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "FsUnwatchParams");
	p->fs.watch_id = args_u64(&a, "watchId");
	return params_end(&a, error);
}

int
params_fs_watch_missing(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct watch_params *w = &p->watch;
	const struct json_value *missing;
	struct args a;

	memset(w, 0, sizeof(*w));
	args_init(&a, &m->doc, m->params, "FsWatchMissingParams");
	w->watch_id = args_u64(&a, "watchId");
	missing = args_list(&a, "missing");
	w->has_present = args_opt_path(&a, "present", &w->present);
	if (missing != NULL && missing->count > 0)
		w->missing =
		    json_alloc(&m->doc, missing->count * sizeof(*w->missing));
	if (missing != NULL)
		for (const struct json_value *v = missing->first; v;
		     v = v->next)
			w->missing[w->missing_count++] = args_path_value(&a, v);
	return params_end(&a, error);
}

/* A list of key paths, each of which is a list of keys. */
static const struct json_value *
take_key_paths(struct args *a, const char *key)
{
	const struct json_value *list = args_list(a, key);

	if (list == NULL)
		return NULL;
	for (const struct json_value *p = list->first; p; p = p->next) {
		if (!args_expect(a, p, JSON_ARRAY, "a sequence"))
			return NULL;
		for (const struct json_value *k = p->first; k; k = k->next)
			if (!args_expect(a, k, JSON_STRING, "a string"))
				return NULL;
	}
	return list;
}

static bool
has_empty_path(const struct json_value *list)
{
	for (const struct json_value *p = list->first; p; p = p->next)
		if (p->first == NULL)
			return true;
	return false;
}

int
params_environment_config_read(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct fs_params *f = &p->fs;
	struct args a;

	begin(&a, m, p, "EnvironmentConfigReadParams");
	f->cwd = args_path(&a, "cwd");
	f->config_paths = take_key_paths(&a, "configPaths");
	f->requirements_paths = take_key_paths(&a, "requirementsPaths");
	if (args_end(&a) < 0)
		return params_end(&a, error);
	if (f->config_paths->first == NULL &&
	    f->requirements_paths->first == NULL)
		args_fail(
		    &a, "at least one config or requirements path is required");
	else if (has_empty_path(f->config_paths) ||
		 has_empty_path(f->requirements_paths))
		args_fail(
		    &a, "TOML paths must contain at least one key segment");
	return params_end(&a, error);
}

int
params_capabilities_discover(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	begin(&a, m, p, "DiscoverV2CapabilitiesRequest");
	p->fs.cwd = args_path(&a, "cwd");
	return end_with(&a, p, error, "FileSystemSandboxContext");
}
