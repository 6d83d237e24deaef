/* SPDX-License-Identifier: ISC */
/*
 * Params of the fs/ methods (doc/protocol.md section 10).
 */
#include <string.h>

#include "params.h"

#define CAPABILITY_CONTEXT_MAX (1u << 20) /* JSON that is compared */

/* `type` is what the peer calls a context, in its errors. */
static void
take_context(struct args *a, union method_params *p, const char *type)
{
	const struct json_value *v = args_opt_object(a, "sandbox", type);

	p->fs.has_sandbox = v != NULL;
	if (v != NULL)
		sandbox_context_decode(a, v, &p->fs.sandbox);
}

static void
take_sandbox(struct args *a, union method_params *p)
{
	take_context(a, p, "WireFileSystemSandboxContext");
}

static void
path_only(struct args *a, union method_params *p, const char *name)
{
	args_begin(a, name);
	p->fs.path = args_path(a, "path");
	take_sandbox(a, p);
}

/* `details` is an addition of execd: the answer has more members than the
 * peer's. */
static void
path_details(struct args *a, union method_params *p, const char *name)
{
	args_begin(a, name);
	p->fs.path = args_path(a, "path");
	p->fs.details = args_opt_bool(a, "details", false);
	take_sandbox(a, p);
}

void
params_fs_read_file(struct args *a, union method_params *p)
{
	path_only(a, p, "WireFsReadFileParams");
}

void
params_fs_get_metadata(struct args *a, union method_params *p)
{
	path_details(a, p, "WireFsGetMetadataParams");
}

void
params_fs_canonicalize(struct args *a, union method_params *p)
{
	path_only(a, p, "WireFsCanonicalizeParams");
}

void
params_fs_read_directory(struct args *a, union method_params *p)
{
	path_details(a, p, "WireFsReadDirectoryParams");
}

/* Invalid base64 gives -32600 here and nowhere else (quirk Q23), because it is
 * decoded only when the file is written. */
void
params_fs_write_file(struct args *a, union method_params *p)
{
	args_begin(a, "WireFsWriteFileParams");
	p->fs.path = args_path(a, "path");
	p->fs.data = args_string(a, "dataBase64");
	take_sandbox(a, p);
}

void
params_fs_create_directory(struct args *a, union method_params *p)
{
	args_begin(a, "WireFsCreateDirectoryParams");
	p->fs.path = args_path(a, "path");
	p->fs.recursive = args_opt_bool(a, "recursive", true);
	take_sandbox(a, p);
}

void
params_fs_remove(struct args *a, union method_params *p)
{
	args_begin(a, "WireFsRemoveParams");
	p->fs.path = args_path(a, "path");
	p->fs.recursive = args_opt_bool(a, "recursive", true);
	p->fs.force = args_opt_bool(a, "force", true);
	take_sandbox(a, p);
}

void
params_fs_copy(struct args *a, union method_params *p)
{
	args_begin(a, "WireFsCopyParams");
	p->fs.path = args_path(a, "sourcePath");
	p->fs.destination = args_path(a, "destinationPath");
	p->fs.recursive = args_bool(a, "recursive");
	take_sandbox(a, p);
}

void
params_fs_move(struct args *a, union method_params *p)
{
	args_begin(a, "FsMoveParams");
	p->fs.path = args_path(a, "sourcePath");
	p->fs.destination = args_path(a, "destinationPath");
	p->fs.overwrite = args_opt_bool(a, "overwrite", false);
	p->fs.keep_attributes = args_opt_bool(a, "keepAttributes", false);
	p->fs.mode = (uint16_t)args_opt_range(
	    a, "mode", 0, FILE_MODE_MAX, FILE_MODE_MAX + 1);
	take_sandbox(a, p);
}

void
params_fs_chmod(struct args *a, union method_params *p)
{
	args_begin(a, "FsChmodParams");
	p->fs.path = args_path(a, "path");
	p->fs.mode = (uint16_t)args_range(a, "mode", 0, FILE_MODE_MAX);
	take_sandbox(a, p);
}

void
params_fs_set_times(struct args *a, union method_params *p)
{
	args_begin(a, "FsSetTimesParams");
	p->fs.path = args_path(a, "path");
	p->fs.modified_ms = args_range(a, "modifiedAtMs", 0, FILE_TIME_MAX);
	take_sandbox(a, p);
}

/* The target is stored in the link as text. It is not resolved for this
 * request. */
void
params_fs_symlink(struct args *a, union method_params *p)
{
	struct slice *target = &p->fs.target;

	args_begin(a, "FsSymlinkParams");
	p->fs.path = args_path(a, "path");
	*target = args_string(a, "target");
	if (args_end(a) == 0 &&
	    (target->len == 0 || memchr(target->ptr, '\0', target->len)))
		args_fail(a, "target must be text without a NUL byte");
	take_sandbox(a, p);
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

void
params_fs_walk(struct args *a, union method_params *p)
{
	const struct json_value *options;

	args_begin(a, "WireFsWalkParams");
	p->fs.path = args_path(a, "path");
	options = args_object(a, "options", "FsWalkOptions");
	if (options != NULL)
		decode_walk(a, options, &p->fs.walk);
	take_sandbox(a, p);
}

void
params_fs_open(struct args *a, union method_params *p)
{
	static const char *const modes[] = { "read", "replace", NULL };

	args_begin(a, "WireFsOpenParams");
	p->fs.handle_id = args_string(a, "handleId");
	p->fs.path = args_path(a, "path");
	p->fs.replace = args_default_enum(a, "mode", modes, 0) == 1;
	p->fs.append = args_opt_bool(a, "append", false);
	if (p->fs.append && !p->fs.replace)
		args_fail(a, "append needs mode `replace`");
	take_sandbox(a, p);
}

void
params_fs_read_block(struct args *a, union method_params *p)
{
	args_begin(a, "FsReadBlockParams");
	p->fs.handle_id = args_string(a, "handleId");
	p->fs.offset = args_u64(a, "offset");
	p->fs.len = args_u64(a, "len");
}

void
params_fs_write_block(struct args *a, union method_params *p)
{
	args_begin(a, "FsWriteBlockParams");
	p->fs.handle_id = args_string(a, "handleId");
	p->fs.offset = args_u64(a, "offset");
	p->fs.data = args_base64(a, "chunk");
}

void
params_fs_close(struct args *a, union method_params *p)
{
	args_begin(a, "FsCloseParams");
	p->fs.handle_id = args_string(a, "handleId");
}

void
params_fs_watch(struct args *a, union method_params *p)
{
	args_begin(a, "FsWatchParams");
	p->fs.watch_id = args_u64(a, "watchId");
	p->fs.path = args_path(a, "path");
	take_sandbox(a, p);
}

void
params_fs_unwatch(struct args *a, union method_params *p)
{
	args_begin(a, "FsUnwatchParams");
	p->fs.watch_id = args_u64(a, "watchId");
}

void
params_fs_watch_missing(struct args *a, union method_params *p)
{
	struct watch_params *w = &p->watch;
	const struct json_value *missing;

	args_begin(a, "FsWatchMissingParams");
	w->watch_id = args_u64(a, "watchId");
	missing = args_list(a, "missing");
	w->has_present = args_opt_path(a, "present", &w->present);
	if (missing != NULL && missing->count > 0)
		w->missing =
		    json_alloc(a->doc, missing->count * sizeof(*w->missing));
	if (missing != NULL)
		for (const struct json_value *v = missing->first; v;
		     v = v->next)
			w->missing[w->missing_count++] = args_path_value(a, v);
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

void
params_environment_config_read(struct args *a, union method_params *p)
{
	struct fs_params *f = &p->fs;

	args_begin(a, "EnvironmentConfigReadParams");
	f->cwd = args_path(a, "cwd");
	f->config_paths = take_key_paths(a, "configPaths");
	f->requirements_paths = take_key_paths(a, "requirementsPaths");
	if (args_end(a) < 0)
		return;
	if (f->config_paths->first == NULL &&
	    f->requirements_paths->first == NULL)
		args_fail(
		    a, "at least one config or requirements path is required");
	else if (has_empty_path(f->config_paths) ||
		 has_empty_path(f->requirements_paths))
		args_fail(
		    a, "TOML paths must contain at least one key segment");
}

void
params_capabilities_discover(struct args *a, union method_params *p)
{
	args_begin(a, "DiscoverV2CapabilitiesRequest");
	p->fs.cwd = args_path(a, "cwd");
	take_context(a, p, "FileSystemSandboxContext");
}

/*
 * One file helper answers, and it has one view. A client of Codex sends the
 * context of its profile with each root.
 */
static void
take_root_context(struct args *a, union method_params *p, bool first,
    const struct json_value **context)
{
	const struct json_value *v =
	    args_opt_object(a, "sandbox", "FileSystemSandboxContext");
	struct json_text here, there;

	if (first) {
		*context = v;
		p->fs.has_sandbox = v != NULL;
		if (v != NULL)
			sandbox_context_decode(a, v, &p->fs.sandbox);
		return;
	}
	json_text_init(&here, CAPABILITY_CONTEXT_MAX);
	json_text_init(&there, CAPABILITY_CONTEXT_MAX);
	if (v != NULL)
		json_copy(&here.w, v);
	if (*context != NULL)
		json_copy(&there.w, *context);
	if (here.buf.failed || here.buf.len != there.buf.len ||
	    (v != NULL &&
		memcmp(here.buf.data, there.buf.data, here.buf.len) != 0))
		args_fail(a,
		    "all roots of a request must have the same sandbox "
		    "context");
	buf_clear(&here.buf);
	buf_clear(&there.buf);
}

void
params_capability_roots(struct args *a, union method_params *p)
{
	const struct json_value *list, *context = NULL;
	struct fs_params *f = &p->fs;
	size_t n = 0;

	args_begin(a, "WireCapabilityRootsDiscoverParams");
	list = args_list(a, "roots");
	for (const struct json_value *v = list ? list->first : NULL; v;
	     v = v->next)
		n +=
		    args_expect(a, v, JSON_OBJECT, "struct WireCapabilityRoot");
	f->nroots = n;
	/* More are refused by the method, with another code. */
	if (list == NULL || a->wrong || n > CAPABILITY_ROOTS_MAX)
		return;
	f->roots = json_alloc(a->doc, (n + 1) * sizeof(f->roots[0]));
	n = 0;
	for (const struct json_value *v = list->first; v; v = v->next, n++) {
		a->object = v;
		f->roots[n].id = args_string(a, "id");
		f->roots[n].path = args_path(a, "path");
		take_root_context(a, p, n == 0, &context);
	}
}
