/* SPDX-License-Identifier: ISC */
/*
 * Builds the environment of a command by the client's policy (doc/protocol.md
 * section 8). Plain C without system calls.
 */
#pragma once

#include "base.h"
#include "params.h"

/*
 * Builds strings of the form "NAME=value": first the variables of base[] that
 * the policy inherits, then those that a login shell exported (NULL: none),
 * filtered as if the policy inherited all, then the policy's set, then env.
 * Later ones replace earlier ones. Returns a NULL-terminated vector that one
 * free() frees, or NULL if a name or value holds a NUL byte.
 */
char **environment_build(char *const *base, const struct env_policy *policy,
    char *const *exports, const struct json_value *env);

/*
 * Both return a copy of a vector, which one free() frees. environment_with()
 * sets one variable, and returns NULL if the value holds a NUL byte.
 * environment_default() sets those of the names (NULL-terminated) that are not
 * set yet.
 */
char **environment_with(
    char *const *envp, const char *name, struct slice value);
char **environment_default(
    char *const *envp, const char *const *names, const char *value);

/*
 * Copies the strings to an argv[], with arg0 as argv[0] unless it is NULL. One
 * free() frees the result. Returns NULL if a string contains a NUL byte.
 */
char **argv_build(const struct json_value *strings, const struct slice *arg0);

/* Returns the value of a name in such a vector, or NULL. */
const char *environment_get(char *const *envp, const char *name);

/*
 * Matches a pattern with * and ? against a whole name, ignoring case (section
 * 8, patterns).
 */
bool environment_matches(struct slice pattern, struct slice name);

/*
 * The variables by which programs find the proxy of a list of hosts
 * (doc/protocol.md section 13.7). Plain C without system calls.
 */

#define PROXY_VALUE_MAX 96

struct proxy_environment {
	uint16_t port; /* of 127.0.0.1, for HTTP and SOCKS5 */
	bool socks;    /* some variables name SOCKS5 */
	/* What is reached without the proxy, less than PROXY_VALUE_MAX bytes.
	 * Borrowed. */
	const char *not_through;
};

/*
 * Returns a copy of a vector in which the variables are set; one free() frees
 * it.
 */
char **proxy_environment(
    char *const *envp, const struct proxy_environment *proxy);
