/* SPDX-License-Identifier: ISC */
/*
 * The environment of a command, by the client's policy (doc/protocol.md section
 * 8). Plain C, no operating system.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "params.h"

/*
 * Builds "NAME=value" strings: inherited ones of base[] by policy, then the
 * policy's set, then env. Returns a NULL-terminated vector that one free()
 * frees, or NULL when a name or value holds a NUL byte.
 */
char **environment_build(char *const *base, const struct env_policy *policy,
    const struct json_value *env);

/* The vector with one variable set; takes envp. NULL, with envp freed: a NUL
 * byte in the value. */
char **environment_with(char **envp, const char *name, struct slice value);

/* Value of a name in such a vector, or NULL. */
const char *environment_get(char *const *envp, const char *name);

/* Whole name, any case, with * and ? (section 8, patterns). */
bool environment_matches(struct slice pattern, struct slice name);

#endif
