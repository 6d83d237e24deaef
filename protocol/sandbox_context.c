/*
 * The client's portable sandbox intent, decoded and validated.
 */
#include "sandbox_context.h"

enum { TYPE_MANAGED, TYPE_DISABLED, TYPE_EXTERNAL };
enum { FS_RESTRICTED, FS_UNRESTRICTED };
enum { NET_RESTRICTED, NET_ENABLED };

static bool
decode_permissions(struct args *a)
{
	static const char *const types[] = { "managed", "disabled", "external",
		NULL };
	static const char *const networks[] = { "restricted", "enabled", NULL };
	static const char *const systems[] = { "restricted", "unrestricted",
		NULL };
	int type = args_enum(a, "type", types), fs = FS_UNRESTRICTED;
	const struct json_value *v;
	struct args in;

	if (args_end(a) < 0 || type == TYPE_DISABLED)
		return type == TYPE_DISABLED;
	if (type == TYPE_MANAGED) {
		v = args_object(a, "file_system", "FileSystemPermissions");
		args_init(&in, a->doc, v, "FileSystemPermissions");
		fs = v ? args_enum(&in, "type", systems) : 0;
		if (v != NULL && args_end(&in) < 0)
			args_fail(a, "%s", in.error);
	}
	return args_enum(a, "network", networks) == NET_ENABLED &&
	       fs == FS_UNRESTRICTED;
}

void
sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *out)
{
	static const char *const levels[] = { "disabled", "restricted-token",
		"elevated", "mxc", NULL };
	struct args in, permissions;
	const struct json_value *p;

	args_init(&in, a->doc, v, "WireFileSystemSandboxContext");
	p = args_object(&in, "permissions", "PermissionProfile");
	args_enum(&in, "windowsSandboxLevel", levels);
	args_init(&permissions, a->doc, p, "PermissionProfile");
	out->unrestricted = p != NULL && decode_permissions(&permissions);
	if (p != NULL && args_end(&permissions) < 0)
		args_fail(a, "%s", permissions.error);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}
