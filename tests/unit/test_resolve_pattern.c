/* SPDX-License-Identifier: ISC */
/*
 * resolve: patterns (doc/sandbox.md sections A6 and A10, rule 8; O9, O16).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resolve_rows.h"

#define TREE                                                                   \
	"/ws/.git/ /ws/top.env /ws/a/.hidden/deep.env /ws/a/x "                \
	"/ws/dir.env/inner /out/o.env "

static const struct resolve_case rows[] = {
	{ "A6 absolute", TREE, "r:@root d:*/ws/*.env",
	    .want = "read d /ws/dir.env f /ws/top.env" },
	{ "A6 crossing, hidden names", TREE, "r:@root d:*/ws/**/*.env",
	    .want = "read f /ws/a/.hidden/deep.env d /ws/dir.env "
		    "f /ws/top.env" },
	{ "A6 relative", TREE, "r:@root d:*a/**",
	    .want = "read d /ws/a/.hidden f /ws/a/x" },
	{ "A6 relative, upwards", TREE, "r:@root d:*../out/*",
	    .want = "read f /out/o.env" },
	{ "A6 of each root", "/a/x/k /b/k /c/k",
	    "r:@root d:*codex-project-roots://**/k", .roots = "/a /b",
	    .want = "read f /a/x/k f /b/k" },
	{ "A6 of each root, only names count", "/a/x/k /a/k /b/k",
	    "r:@root d:*codex-project-roots://x//?", .roots = "/a /b",
	    .want = "read f /a/x/k" },
	{ "A6 of each root, three slashes", "/a/x/k /b/k",
	    "r:@root d:*codex-project-roots:///k", .roots = "/a /b",
	    .want = "read d /a d /b" },
	{ "A6 of each root, a dot", "/a/x/k /b/k",
	    "r:@root d:*codex-project-roots://x/./?", .roots = "/a /b",
	    .want = "read d /a d /b" },
	{ "A6 of each root, upwards", "/a/x/k /b/k",
	    "r:@root d:*codex-project-roots://x/../?", .roots = "/a /b",
	    .want = "read d /a d /b" },
	{ "A6 of no root", TREE, "r:@root d:*codex-project-roots://**",
	    .roots = "", .want = "read" },
	{ "A6 no wildcard", TREE, "r:@root d:*/ws/top.env d:*/ws/gone",
	    .want = "read f /ws/top.env" },
	{ "A6 unclosed class", "/ws/[a /ws/a", "r:@root d:*/ws/*[a",
	    .want = "read f /ws/[a" },
	{ "A6 class", "/ws/a1 /ws/b1 /ws/c1", "r:@root d:*/ws/[!b-z]?",
	    .want = "read f /ws/a1" },
	{ "A6 alternatives", "/ws/a.pem /ws/b.key /ws/c",
	    "r:@root d:*/ws/*.{pem,key}",
	    .want = "read f /ws/a.pem f /ws/b.key" },
	{ "O9 userHomeDir", "/h/.ssh/id /r/.ssh/id", "r:@root d:*~/.ssh/**",
	    .home = "/r", .user_home = "/h", .want = "read f /h/.ssh/id" },
	{ "O9 the identity's home", "/h/.ssh/id /r/.ssh/id",
	    "r:@root d:*~/.ssh/**", .home = "/r", .want = "read f /r/.ssh/id" },
	{ "O9 home itself", "/r/x", "r:@root d:*~", .home = "/r",
	    .want = "read d /r" },
	{ "O9 no home", TREE, "r:@root d:*~/x",
	    .want = "!sandbox pattern `~/x` is invalid: there is no home "
		    "directory" },
	{ "A10.8 below a writable root", TREE, "r:@root w:@ws d:***/*.env",
	    .want = "read w /ws r /ws/.git p /ws/a p /ws/a/.hidden "
		    "f /ws/a/.hidden/deep.env d /ws/dir.env f /ws/top.env" },
	{ "A10.8 a link and its target", "/ws/l.env>/out/s /out/s /ws/d.env>x",
	    "r:@root d:***/*.env", .want = "read f /out/s" },
	{ "A10.8 a link is no error in a writable root",
	    "/ws/.git/ /ws/l.env>s /ws/s", "r:@root w:@ws d:*l.* d:*l.env",
	    .want = "read w /ws r /ws/.git f /ws/s" },
	{ "A10.8 a loop", "/ws/l.env>l.env", "r:@root d:***.env",
	    .want = "read" },
	{ "A10.8 links are not entered", "/ws/l>/out /out/x.env /ws/a/",
	    "r:@root d:***/x.env", .want = "read" },
	{ "A10.8 depth", "/ws/1.e /ws/a/2.e /ws/a/b/3.e", "r:@root d:***/*.e",
	    .depth = 2, .want = "read f /ws/1.e f /ws/a/2.e" },
	{ "A10.8 the base may be a link", "/l>ws /ws/x.e", "r:@root d:*/l/*.e",
	    .want = "read f /ws/x.e" },
	{ "O16 a directory's content", TREE, "r:@root d:*dir.*",
	    .want = "read d /ws/dir.env" },
	{ "O16 reopened below",
	    "/ws/.git/ /ws/d.env/o/.git/ /ws/d.env/x.env "
	    "/ws/d.env/o/y.env",
	    "r:@root w:@ws d:***/*.env w:/ws/d.env/o",
	    .want = "read w /ws r /ws/.git D /ws/d.env w /ws/d.env/o "
		    "r /ws/d.env/o/.git f /ws/d.env/o/y.env" },
	{ "O16 a pattern of /proc", "/proc/1/environ",
	    "r:@root d:*/proc/*/environ", .want = "read no-proc" },
	{ "O16 a pattern through /proc", TREE "/proc/1/",
	    "r:@root d:*/proc/self/root/ws/*.env",
	    .want = "!a sandbox entry denies what a link of /proc leads to" },
	{ "A9 two lines", TREE, "r:@root d:*/ws/*.env\n",
	    .want = "!sandbox pattern `/ws/*.env\n` is invalid: it has more "
		    "than one line" },
	{ "O16 a pattern into /proc", "/proc/1/x /a/1/x", "r:@root d:*/*/1/x",
	    .want = "read f /a/1/x" },
	{ "A10.8 a closed directory", "/ws/k! /ws/k/x.env /ws/.git/",
	    "r:@root w:@ws d:***/*.env",
	    .want = "read w /ws r /ws/.git d /ws/k" },
	{ "A9 bad range", TREE, "r:@root d:*/ws/[z-a]",
	    .want = "!sandbox pattern `/ws/[z-a]` is invalid: invalid range" },
	{ "A9 the whole disk", TREE, "r:@root d:*/**",
	    .want = "!sandbox pattern `/**` is invalid: it would scan the "
		    "whole file system" },
	{ "A9 the whole disk, below", TREE, "r:@root d:*/**/*.env",
	    .want = "!sandbox pattern `/**/*.env` is invalid: it would scan "
		    "the whole file system" },
	{ "A9 the whole disk to a depth", TREE, "r:@root d:*/**/*.env",
	    .depth = 2,
	    .want = "read f /out/o.env d /ws/dir.env f /ws/top.env" },
	{ "A9 empty", TREE, "r:@root d:*",
	    .want = "!sandbox pattern `` is invalid: empty" },
	{ "A10.4 a pattern and an entry", "/ws/.git/ /ws/b/",
	    "r:@root w:@ws d:*b* w:/ws/b",
	    .want = "read w /ws r /ws/.git d /ws/b" },
};

static void
test_rows(void **state)
{
	check_rows(rows, nitems(rows));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
