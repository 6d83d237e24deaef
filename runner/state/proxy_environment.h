/* SPDX-License-Identifier: ISC */
/*
 * The variables by which programs find the proxy of a list of hosts
 * (doc/protocol.md section 13.7). Plain C without system calls.
 */
#ifndef PROXY_ENVIRONMENT_H
#define PROXY_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

struct proxy_environment {
	uint16_t port;	  /* of 127.0.0.1, for HTTP and SOCKS5 */
	bool socks;	  /* some variables name SOCKS5 */
	bool allow_local; /* private addresses are reached without the proxy */
};

/*
 * Returns a copy of a vector in which the variables are set; one free() frees
 * it.
 */
char **proxy_environment(
    char *const *envp, const struct proxy_environment *proxy);

#endif
