/* SPDX-License-Identifier: ISC */
/*
 * [control] of execd.conf(5): the socket of `execd ctl`, and who besides root
 * may use it.
 */
#include <grp.h>
#include <string.h>

#include "conf.h"
#include "util.h"

#define SOCKET_PATH_MAX 107 /* of sockaddr_un, without the NUL */

static int
parse_socket(void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0 && (text[0] != '/' || text[1] == '/' ||
					     strlen(text) > SOCKET_PATH_MAX))
		return conf_refuse(why,
		    "`%.120s` is neither none nor an absolute path of at most "
		    "%d characters",
		    text, SOCKET_PATH_MAX);
	return conf_string.parse(at, text, why);
}

static void
show_socket(struct buf *b, const void *at)
{
	conf_string.show(b, at);
}

static void
clear_socket(void *at)
{
	conf_string.clear(at);
}

static const struct conf_type conf_ctl_socket = { parse_socket, show_socket,
	clear_socket, false, false };

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct control_rules, member)         \
	}

static const struct conf_key keys[] = {
	KEY("ctl-socket", conf_ctl_socket, socket),
	KEY("ctl-group", conf_string, group),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->control;
}

static void *
object(const struct conf *c, size_t i)
{
	bool said = c->control.socket != NULL || c->control.group != NULL;

	return i == 0 && said ? (void *)(uintptr_t)&c->control : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	struct control_rules *r = o;
	const struct group *gr = r->group != NULL ? getgrnam(r->group) : NULL;

	if (r->group != NULL && gr == NULL)
		return conf_refuse(
		    why, "ctl-group: there is no group `%.100s`", r->group);
	r->gid = gr != NULL ? gr->gr_gid : 0;
	if (r->group == NULL || r->socket == NULL ||
	    strcmp(r->socket, "none") != 0)
		return 0;
	return conf_refuse(why, "ctl-group: there is no ctl-socket to permit");
}

const struct conf_section conf_control = { "control", false, keys, nitems(keys),
	add, object, check };
