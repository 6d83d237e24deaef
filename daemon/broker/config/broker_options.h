/* SPDX-License-Identifier: ISC */
/*
 * What the operator said on the command line (execd(8)). Parsed once, by root,
 * from root's own argv.
 */
#ifndef BROKER_OPTIONS_H
#define BROKER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_LISTENERS_MAX 8
#define OPTIONS_LIMITS_MAX    32
#define OPTIONS_VARIABLES_MAX 64

/* --ws-auth, with codex exec-server's words (doc/protocol.md section 1.5). */
enum auth_mode { AUTH_NONE, AUTH_CAPABILITY_TOKEN, AUTH_SIGNED_TOKEN };

struct options {
	const char *config_file; /* -c; NULL: the default, or flags */
	bool check, print;	 /* -t, -T */
	const char *listen[OPTIONS_LISTENERS_MAX];
	size_t listeners;
	const char *user; /* NULL: single-user mode */
	const char *variables[OPTIONS_VARIABLES_MAX]; /* --environment */
	size_t nvariables;
	bool allow_unauthenticated;
	enum auth_mode ws_auth;
	const char *ws_token_file, *ws_token_sha256;
	const char *ws_shared_secret_file, *ws_issuer, *ws_audience;
	uint32_t ws_skew_s;
	const char *sessions; /* socket of root's execd; NULL: it started us */
	const char *ctl_socket; /* of [control]; it counts more than the file */
	bool debug;
	/* Keys of [limits] given as flags: they count more than the file. */
	struct {
		const char *keyword, *value;
	} limits[OPTIONS_LIMITS_MAX];
	size_t nlimits;
};

/* Fills *o. Returns -1 to go on, else an exit code: help and version were
 * printed, or the error was. */
int options_parse(struct options *o, int argc, char **argv);

/* Was anything said that a configuration file says instead? */
bool options_describe_service(const struct options *o);

#endif
