/* SPDX-License-Identifier: ISC */
/*
 * The command line (execd(8)). The broker parses it once, from the argv of
 * root's execd.
 */
#pragma once

#include "base.h"
#include "path_map.h"

#define OPTIONS_LISTENERS_MAX 8
#define OPTIONS_LIMITS_MAX    32
#define OPTIONS_VARIABLES_MAX 64

/* --ws-auth, in the words of codex exec-server (doc/protocol.md section
 * 1.5). */
enum auth_mode { AUTH_NONE, AUTH_CAPABILITY_TOKEN, AUTH_SIGNED_TOKEN };

struct options {
	const char *listen[OPTIONS_LISTENERS_MAX];
	size_t listeners;
	const char *config_file; /* -c; NULL: the default file, or flags */
	bool check, print;	 /* -t, -T */
	const char *user;	 /* NULL: single-user mode */
	const char *variables[OPTIONS_VARIABLES_MAX]; /* --environment */
	size_t nvariables;
	const char *path_maps[PATH_MAP_ROOTS_MAX]; /* --path-map */
	size_t npath_maps;
	bool allow_unauthenticated;
	bool exit_on_stdin_close;
	enum auth_mode ws_auth;
	const char *ws_token_file, *ws_token_sha256;
	const char *ws_shared_secret_file, *ws_issuer, *ws_audience;
	uint32_t ws_skew_s;
	/* socket of root's execd; NULL: root's execd started us */
	const char *sessions;
	/* of [control]; replaces the value of the file */
	const char *ctl_socket;
	bool debug;
	/* Keys of [limits] that were given as flags. They replace the file's
	 * values. */
	struct {
		const char *keyword, *value;
	} limits[OPTIONS_LIMITS_MAX];
	size_t nlimits;
};

/* Fills *o. Returns -1 to go on, or an exit code after printing the help, the
 * version or an error. */
int options_parse(struct options *o, int argc, char **argv);

/* Tells whether an option was given that belongs into a configuration file. */
bool options_describe_service(const struct options *o);
