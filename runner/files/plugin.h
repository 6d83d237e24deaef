/* SPDX-License-Identifier: ISC */
/*
 * A plugin: its names and versions in a plugin cache, and what its manifest
 * says.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include "json.h"

#define PLUGIN_ERROR_MAX     192
#define PLUGIN_REMOTE_ID_MAX 1024 /* bytes */

/* Where the manifest is, below the plugin; the first that is there counts. */
extern const char *const plugin_manifests[];
extern const size_t plugin_manifests_count;

struct plugin_manifest {
	struct json_doc doc;
	char *name;		/* as written; NULL: none */
	char *display_name;	/* NULL: none */
	struct slice mcp, apps; /* paths that it names; .ptr NULL: none */
	const struct json_value *mcp_servers; /* written in it; NULL: none */
};

/*
 * Returns 0, or -EBADMSG with the error. The text must outlive the manifest.
 * Call plugin_manifest_clear() in either case.
 */
int plugin_manifest_parse(struct plugin_manifest *m, const char *text,
    size_t len, char error[PLUGIN_ERROR_MAX]);
void plugin_manifest_clear(struct plugin_manifest *m);

/*
 * Returns the name in a manifest of which nothing else is asked; NULL if the
 * manifest is invalid, "" if it has none. The caller owns it.
 */
char *plugin_manifest_name(const char *text, size_t len);

/*
 * Reads where a plugin was installed from. Returns the id, which the caller
 * owns, or NULL with the error.
 */
char *plugin_remote_id(
    const char *text, size_t len, char error[PLUGIN_ERROR_MAX]);

#endif
