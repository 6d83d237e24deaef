/* SPDX-License-Identifier: ISC */
/*
 * What the parts of discovery share: the answer as it grows, and the place that
 * is searched. files_discover.c begins with the places that the host has,
 * capability_roots.c with those that the client names.
 */
#pragma once

#include "yaml_tree.h"

/* The peer's limits. */
#define DEPTH_MAX	  6
#define DIRECTORIES_MAX	  2000 /* of one place */
#define ENTRIES_MAX	  20000
#define FILE_BYTES_MAX	  (1u << 20)
#define PLACE_BYTES_MAX	  (16u << 20) /* files of one place */
#define PLACES_MAX	  512
#define FOUND_MAX	  2048 /* plugins and skills */
#define ANSWER_BYTES_MAX  (4u << 20)
#define WARNINGS_MAX	  64
#define WARNING_BYTES_MAX 512

/* How a warning begins; what is left out and why follows. */
#define NO_PLACE                                                               \
	"some capability locations could not be resolved; discovery may be "   \
	"incomplete"
#define NO_METADATA                                                            \
	"some capability metadata could not be loaded; discovery may be "      \
	"incomplete"

/* The answer, as it grows. */
struct discovery {
	struct json_text plugins, skills, warnings;
	unsigned found, places, warning_count;
	bool truncated;
	/* capabilityRoots/discoverV1: warnings are in the peer's words, and
	 * name the file by its URI */
	bool roots;
};

struct found_file {
	char *path, *uri;
	char *top;   /* of a manifest: URI of the plugin that it belongs to */
	size_t rank; /* of a manifest: its place among plugin_manifests */
};

struct found_files {
	struct found_file *all; /* owned */
	size_t count, cap;
};

/* The skills below a directory have a plugin's name before theirs. */
struct namespace
{
	struct namespace *next;
	char *top, *name;
};

/* A directory that is searched. */
struct place {
	struct discovery *d;
	const char *root;
	const char *id; /* of a place of skills; NULL: it is a plugin */
	size_t bytes;	/* of the files that were read */
	struct found_files skills, manifests;
	struct namespace *namespaces;
};

/* An installed plugin. */
struct installed {
	const char *id, *version;
	const char *remote_id; /* NULL: none */
};

/* --- files_discover.c --------------------------------------------------- */

/* Returns whether the path is a directory. If it is not known, the answer gets
 * a warning. */
bool discover_is_directory(struct discovery *d, const char *path);

/* Finds the files that matter below the place. Call discover_clear(). */
void discover_scan(struct place *p);
void discover_clear(struct place *p);

/* Reads the manifest of a directory. *path and the buffer are the caller's.
 * Returns false if it has none; *path is NULL then. */
bool discover_read_manifest(
    struct place *p, const char *top, char **path, struct buf *b);

/* Visits the manifests by whose names the skills below them are called: the
 * place's own, which the caller has read (NULL: there is none), or the nearest
 * above it, and the first of each directory below. */
typedef void manifest_fn(void *arg, const char *path, const struct buf *text);
void discover_manifests(struct place *p, const char *own,
    const struct buf *text, manifest_fn *visit, void *arg);

/* Returns the path without its last `levels` names, or its URI. The caller owns
 * them. */
char *discover_directory_of(const char *path, int levels);
char *discover_uri_of(const char *path);

/* Searches a place for skills, or an installed plugin (`in` is not NULL). */
void discover_search_place(struct discovery *d, const char *root,
    const char *id, const struct installed *in);

/* Appends what was found unless the answer has no room for it. */
void discover_admit(struct discovery *d, struct json_text *to,
    const struct json_text *found, unsigned count);

/* Adds a warning: NO_PLACE or NO_METADATA, and the path and the reason. */
void discover_warn(struct discovery *d, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void discover_warn_errno(
    struct discovery *d, const char *what, const char *path, int err);

/* Reads a file of at most max bytes. Returns 0 or -errno; -ENOENT: it is no
 * plain file; -EFBIG: it is longer. */
int discover_read_file(const char *path, struct buf *b, size_t max);

/* The same for a file of a place, which counts for the place's limit and adds
 * its own warning. The buffer is the caller's if the result is 0. */
int discover_read_text(struct place *p, const char *path, struct buf *b);

/* Writes a file: its path and its text. */
void discover_write_file(
    struct json_writer *w, const char *path, const struct buf *b);

/* Writes one skill. Returns false if the file is none. */
bool discover_read_skill(
    struct json_writer *w, struct place *p, const char *path);

/* --- capability_roots.c ------------------------------------------------- */

/* Warnings of capabilityRoots/discoverV1: a file that was not read, and a
 * directory that was not listed. */
void capability_tell_unread(struct place *p, const char *path, int err);
void capability_tell_unscanned(struct place *p, const char *path, int err);

/* --- plugin.c ----------------------------------------------------------- */

/*
 * A plugin: its names and versions in a plugin cache, and what its manifest
 * says.
 */

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

/* Writes mcpConfig and appsConfig: the files that a manifest names, or else
 * those with the usual names; null if there is none. */
void plugin_write_configs(struct json_writer *w, struct place *p,
    const char *manifest, const struct plugin_manifest *m);

/* Appends a plugin with the manifest `text`, which lies at `path`. */
void discover_plugin(struct place *p, const struct installed *in,
    const char *path, const struct buf *text);

/* Appends the plugins of a cache. */
void discover_cache(struct discovery *d, const char *root);

/* --- skill.c ------------------------------------------------------------ */

/*
 * A skill: what the front matter of its SKILL.md says, and its
 * agents/openai.yaml. Both files may be of anybody.
 */

#define SKILL_NAME_MAX	    64	 /* characters */
#define SKILL_QUALIFIED_MAX 129	 /* with the name of its plugin */
#define SKILL_TOOL_WORD_MAX 64	 /* a tool's type and transport */
#define SKILL_TOOL_TEXT_MAX 1024 /* its other members */
#define SKILL_ERROR_MAX	    192

struct skill_text {
	char *name, *description;
	char *short_description; /* NULL: none */
	char error[SKILL_ERROR_MAX];
};

/*
 * Reads SKILL.md. `directory` is the name if the text has none. Returns 0, or
 * -EBADMSG with the error. Call skill_text_clear() in either case.
 */
int skill_text_parse(
    struct skill_text *s, const char *text, size_t len, const char *directory);
void skill_text_clear(struct skill_text *s);

/*
 * Appends the members "dependencies" and "policy" that agents/openai.yaml has.
 * Returns 0, or -EBADMSG with the error; then both are null.
 */
int skill_agents_write(struct json_writer *w, const char *text, size_t len,
    char error[SKILL_ERROR_MAX]);
/* Appends them as null: there is no such file. */
void skill_agents_none(struct json_writer *w);

/* Returns the number of characters in UTF-8. */
size_t skill_characters(const char *text);
