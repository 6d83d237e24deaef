/* SPDX-License-Identifier: ISC */
/*
 * resolve: protected names, worktrees, nested repositories, missing
 * carve-outs, pins, and links inside of writable roots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resolve_rows.h"

#define ALL ".git .codex .agents .aws"
#define CROSSES(path, link)                                                    \
	"!cannot enforce sandbox read-only path " path                         \
	" because it crosses writable symlink " link
#define WORKTREE                                                               \
	"/w/tree/.git=gitdir:/w/main/.git/worktrees/tree "                     \
	"/w/main/.git/worktrees/tree/commondir=../.. "                         \
	"/w/main/.git/hooks/ /w/main/.git/config "

static const struct resolve_case rows[] = {
	/* A10.5 */
	{ "A10.5 all names", "/ws/.git/ /ws/.codex/ /ws/.agents/ /ws/.aws/",
	    "r:@root w:@ws", .names = ALL,
	    .want = "read w /ws r /ws/.agents r /ws/.aws r /ws/.codex "
		    "r /ws/.git" },
	{ "A10.5 missing names", "/ws/", "r:@root w:@ws", .names = ALL,
	    .want = "read w /ws M /ws/.agents M /ws/.aws M /ws/.codex "
		    "M /ws/.git" },
	{ "A3 the default policy", "/ws/.git/ /tmp/ /t/",
	    "r:@root w:@ws w:@tmp w:@tmpdir r:@ws:.git r:@ws:.agents "
	    "r:@ws:.codex r:@ws:.aws",
	    .names = ALL, .tmpdir = "/t",
	    .want = "read s /t s /tmp w /ws M /ws/.agents M /ws/.aws "
		    "M /ws/.codex r /ws/.git" },
	{ "C3.4 scratch places protect no names",
	    "/tmp/.git/ /t/.codex>/nowhere /ws/.git/",
	    "r:@root w:@ws w:@tmp w:@tmpdir", .tmpdir = "/t",
	    .want = "read s /t s /tmp w /ws r /ws/.git" },
	{ "C3.4 nor is a pointer followed there",
	    "/tmp/.git=gitdir:/ws/x /ws/x/ /ws/.git/", "r:@root w:@ws w:@tmp",
	    .want = "read s /tmp w /ws r /ws/.git" },
	{ "C3.4 but for a workspace that lies in one", "/tmp/ws/.git/",
	    "r:@root w:@tmp w:/tmp/ws",
	    .want = "read s /tmp w /tmp/ws r /tmp/ws/.git" },
	{ "A10.5 only at the top", "/ws/.git/ /ws/a/.git/", "r:@root w:@ws",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.5 a file", "/ws/.git", "r:@root w:@ws",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.5 write names it", .entries = "r:@root w:@ws w:@ws:.git",
	    .names = ".codex",
	    .want = "read w /ws M /ws/.codex p /ws/.git M /ws/.git/.codex" },
	{ "A10.5 write names it: its own names",
	    .entries = "r:@root w:@ws w:@ws:.git",
	    .want = "read w /ws p /ws/.git M /ws/.git/.git" },
	{ "A10.5 write names something below", "/ws/.git/x /ws/.codex/",
	    "r:@root w:@ws w:@ws:.git/x", .want = "read w /ws" },
	{ "A10.5 write names it, missing", "/ws/",
	    "r:@root w:@ws w:/ws/.git/x/y", .want = "read w /ws" },
	{ "A10.5 write names it, read too",
	    .entries = "r:@root w:@ws r:@ws:.git w:@ws:.git/x",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.5 reopened below a read entry", "/ws/.git/x",
	    "r:@root w:@ws r:@ws:.git w:@ws:.git/x",
	    .want = "read w /ws r /ws/.git w /ws/.git/x" },
	{ "A10.5 denied instead", .entries = "r:@root w:@ws d:@ws:.git",
	    .want = "read w /ws d /ws/.git" },
	{ "A10.5 a writable file has none", "/f", "r:@root w:/f",
	    .want = "read w /f" },
	{ "A10.5 the whole tree has none", "/.git/ /ws/", "w:@root",
	    .want = "write" },
	{ "A10.5 a root in a root", "/w/p/ws/.git/ /w/.git/",
	    "r:@root w:/w w:/w/p/ws",
	    .want = "read w /w r /w/.git p /w/p p /w/p/ws r /w/p/ws/.git" },
	{ "A10.5 names are the operator's", "/ws/.hg/ /ws/.git/",
	    "r:@root w:@ws", .names = ".hg", .want = "read w /ws r /ws/.hg" },
	/* O5: worktrees */
	{ "A10.5 a pointer that leads nowhere", "/ws/.git=gitdir:/gone",
	    "r:@root w:@ws", .want = "read w /ws r /ws/.git" },
	{ "A10.5 gitdir", "/ws/.git=gitdir:../repo/x /repo/x/",
	    "r:@root w:@ws w:/repo",
	    .want = "read w /repo M /repo/.git r /repo/x w /ws r /ws/.git" },
	{ "A10.5 gitdir where nobody writes",
	    "/ws/.git=gitdir:/repo/x /repo/x/", "r:@root w:@ws",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.5 no pointer", "/ws/.git=gitdi:/repo/x /repo/x/",
	    "r:@root w:@ws w:/repo",
	    .want = "read w /repo M /repo/.git w /ws r /ws/.git" },
	{ "O5 the common directory", WORKTREE "/w/.git/",
	    "r:@root w:/w w:/w/tree",
	    .want = "read w /w r /w/.git p /w/main r /w/main/.git p /w/tree "
		    "r /w/tree/.git" },
	{ "O5 with the client's own read", WORKTREE "/w/.git/",
	    "r:@root w:/w w:/w/tree r:/w/tree/.git",
	    .want = "read w /w r /w/.git p /w/main r /w/main/.git p /w/tree "
		    "r /w/tree/.git" },
	{ "O5 write names the gitdir", WORKTREE "/w/.git/",
	    "r:@root w:/w w:/w/tree w:/w/main/.git/worktrees/tree",
	    .names = ".git",
	    .want = "read w /w r /w/.git p /w/main r /w/main/.git "
		    "w /w/main/.git/worktrees/tree "
		    "M /w/main/.git/worktrees/tree/.git p /w/tree "
		    "r /w/tree/.git" },
	{ "O5 a pointer to the root itself",
	    "/ws/.git=gitdir:. /ws/commondir=..", "r:@root w:@ws",
	    .want = "read w /ws r /ws/.git" },
	{ "O5 a gitdir through a link", "/ws/.git=gitdir:l/x /ws/l>r /ws/r/x/",
	    "r:@root w:@ws", .want = CROSSES("/ws/r/x", "/ws/l") },
	{ "O5 a gitdir that is a loop", "/ws/.git=gitdir:l /ws/l>l",
	    "r:@root w:@ws", .want = "read w /ws r /ws/.git" },
	{ "O5 a gitdir that is a file", "/ws/.git=gitdir:f /ws/f",
	    "r:@root w:@ws", .want = "read w /ws r /ws/.git" },
	{ "O5 a way that may not be looked along", "/ws/.git=gitdir:d/x /ws/d!",
	    "r:@root w:@ws",
	    .want = "!cannot look into /ws/d, where the git directory d/x to "
		    "protect may lie" },
	{ "O5 the way to a common directory, likewise",
	    "/ws/.git=gitdir:g /ws/g/commondir=../d/x /ws/d!", "r:@root w:@ws",
	    .want = "!cannot look into /ws/d, where the git directory ../d/x "
		    "to protect may lie" },
	{ "O5 such a way where nobody writes", "/ws/.git=gitdir:/d/x /d!",
	    "r:@root w:@ws", .want = "read w /ws r /ws/.git" },
	/* O6: nested repositories */
	{ "O6 off", "/ws/.git/ /ws/s/.git/hooks/", "r:@root w:@ws",
	    .want = "read w /ws r /ws/.git" },
	{ "O6 hooks and config",
	    "/ws/.git/ /ws/s/.git/hooks/ /ws/s/.git/config", "r:@root w:@ws",
	    .nested = 1,
	    .want = "read w /ws r /ws/.git p /ws/s p /ws/s/.git "
		    "r /ws/s/.git/config r /ws/s/.git/hooks" },
	{ "O6 to a depth",
	    "/ws/.git/ /ws/a/b/.git/hooks/ /ws/a/b/c/.git/hooks/",
	    "r:@root w:@ws", .nested = 2,
	    .want = "read w /ws r /ws/.git p /ws/a p /ws/a/b p /ws/a/b/.git "
		    "r /ws/a/b/.git/hooks" },
	{ "O6 the depth of each root",
	    "/w/.git/ /w/ws/.git/ /w/ws/a/.git/hooks/", "r:@root w:/w w:/w/ws",
	    .nested = 1,
	    .want = "read w /w r /w/.git p /w/ws r /w/ws/.git p /w/ws/a "
		    "p /w/ws/a/.git r /w/ws/a/.git/hooks" },
	{ "O6 no hooks yet", "/ws/.git/ /ws/s/.git/config", "r:@root w:@ws",
	    .nested = 3,
	    .want = "read w /ws r /ws/.git p /ws/s p /ws/s/.git "
		    "r /ws/s/.git/config M /ws/s/.git/hooks" },
	{ "O6 no repository", "/ws/.git/ /ws/s/.git/", "r:@root w:@ws",
	    .nested = 3, .want = "read w /ws r /ws/.git" },
	{ "O6 a nested worktree",
	    "/ws/.git/ /ws/s/.git=gitdir:../m /ws/m/hooks/ "
	    "/ws/m/commondir=../n /ws/n/hooks/",
	    "r:@root w:@ws", .nested = 1,
	    .want = "read w /ws r /ws/.git p /ws/m r /ws/m/hooks p /ws/n "
		    "r /ws/n/hooks" },
	{ "O6 write names it", "/ws/.git/ /ws/s/.git/hooks/",
	    "r:@root w:@ws w:/ws/s/.git", .nested = 2, .names = ".x",
	    .want = "read w /ws M /ws/.x p /ws/s p /ws/s/.git "
		    "M /ws/s/.git/.x" },
	{ "O6 links are not followed", "/ws/.git/ /ws/s>/o /o/.git/hooks/",
	    "r:@root w:@ws w:/o", .names = ".x", .nested = 1,
	    .want = "read w /o M /o/.x w /ws M /ws/.x" },
	{ "O6 a closed directory", "/ws/.git/ /ws/k! /ws/k/.git/hooks/",
	    "r:@root w:@ws", .nested = 2,
	    .want = "read w /ws r /ws/.git r /ws/k" },
	{ "O6 a closed directory at the depth",
	    "/ws/.git/ /ws/k! /ws/k/.git/hooks/", "r:@root w:@ws", .nested = 1,
	    .want = "read w /ws r /ws/.git r /ws/k" },
	{ "O6 a closed git directory",
	    "/ws/.git/ /ws/s/ /ws/s/.git! /ws/s/.git/config", "r:@root w:@ws",
	    .nested = 1, .want = "read w /ws r /ws/.git p /ws/s r /ws/s/.git" },
	/* A10.6: missing carve-outs */
	{ "A10.6 the first missing component",
	    .entries = "r:@root w:@ws r:/ws/a/b/c",
	    .want = "read w /ws r /ws/.git m /ws/a" },
	{ "A10.6 deny", "/ws/.git/ /ws/a/", "r:@root w:@ws d:/ws/a/b/c",
	    .want = "read w /ws r /ws/.git p /ws/a m /ws/a/b" },
	{ "A10.6 twice", .entries = "r:@root w:@ws r:/ws/a/b d:/ws/a/c",
	    .want = "read w /ws r /ws/.git m /ws/a" },
	{ "A10.6 a protected name", "/ws/", "r:@root w:@ws d:/ws/.git/config",
	    .want = "read w /ws M /ws/.git" },
	{ "A10.6 not below a root", "/ws/.git/", "r:@root w:@ws d:/x/y",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.6 below a read-only part", "/ws/.git/ /ws/ro/",
	    "r:@root w:@ws r:/ws/ro d:/ws/ro/x",
	    .want = "read w /ws r /ws/.git r /ws/ro" },
	{ "A10.6 root write", .entries = "w:@root d:/x/y",
	    .want = "write m /x" },
	{ "A10.6 a file in the middle", "/ws/.git/ /ws/d/f",
	    "r:@root w:@ws d:/ws/d/f/x",
	    .want = "read w /ws r /ws/.git p /ws/d p /ws/d/f" },
	{ "A10.6 a closed directory, deny", "/ws/.git/ /ws/k! /ws/k/s",
	    "r:@root w:@ws d:/ws/k/s",
	    .want = "read w /ws r /ws/.git d /ws/k" },
	{ "A10.6 a closed directory, read", "/ws/.git/ /ws/k! /ws/k/s",
	    "r:@root w:@ws r:/ws/k/s",
	    .want = "read w /ws r /ws/.git r /ws/k" },
	{ "A10.6 a closed root", "/ws!", "r:@root w:@ws", .want = "read" },
	{ "E deny_read missing", "/h/.git/", "r:@root w:/h", .home = "/h",
	    .deny = "~/.aws/credentials", .names = ".git .aws",
	    .want = "read w /h M /h/.aws r /h/.git" },
	/* C3.6, A9: links a command could turn */
	{ "C3.6 a protected name", "/ws/.git>real /ws/real/", "r:@root w:@ws",
	    .want = "read w /ws p /ws/.git r /ws/real" },
	{ "C3.6 a protected name that dangles", "/ws/.git>gone",
	    "r:@root w:@ws", .want = "read w /ws p /ws/.git M /ws/gone" },
	{ "C3.6 named by the client", "/ws/.git>real /ws/real/",
	    "r:@root w:@ws r:@ws:.git",
	    .want = "read w /ws p /ws/.git r /ws/real" },
	{ "C3.6 write through the link", "/ws/.git>real /ws/real/",
	    "r:@root w:@ws w:@ws:.git",
	    .want = "read w /ws p /ws/.git r /ws/real" },
	{ "C3.6 links one after the other", "/ws/.git>a/l /ws/a/l>../r /ws/r/",
	    "r:@root w:@ws r:@ws:.git",
	    .want = "read w /ws p /ws/.git p /ws/a p /ws/a/l r /ws/r" },
	{ "C3.6 a protected name that leads out", "/ws/.git>/o /o/",
	    "r:@root w:@ws r:@ws:.git", .want = "read w /ws p /ws/.git" },
	{ "C3.6 a protected name that leads in a circle", "/ws/.git>.git",
	    "r:@root w:@ws", .want = "read w /ws p /ws/.git" },
	{ "C3.6 below a protected name", "/ws/.git>real /ws/real/x",
	    "r:@root w:@ws r:@ws:.git/x",
	    .want = CROSSES("/ws/.git/x", "/ws/.git") },
	{ "C3.6 a denied protected name", "/ws/.git>real /ws/real/",
	    "r:@root w:@ws d:@ws:.git",
	    .want = CROSSES("/ws/.git", "/ws/.git") },
	{ "C3.6 a pointer by a link", "/ws/.git>real /ws/real", "r:@root w:@ws",
	    .want = CROSSES("/ws/.git", "/ws/.git") },
	{ "C3.6 a link to the root", "/ws/.git>.", "r:@root w:@ws",
	    .want = CROSSES("/ws/.git", "/ws/.git") },
	{ "C3.6 deny", "/ws/.git/ /ws/l>/s /s/x", "r:@root w:@ws d:/ws/l/x",
	    .want = CROSSES("/ws/l/x", "/ws/l") },
	{ "C3.6 read", "/ws/.git/ /ws/l>/s /s/x", "w:@ws r:/ws/l/x",
	    .want = CROSSES("/ws/l/x", "/ws/l") },
	{ "C3.6 with a subpath", "/ws/.git/ /ws/l>/s /s/x",
	    "r:@root w:@ws d:@ws:l/x", .want = CROSSES("/ws/l/x", "/ws/l") },
	{ "C3.6 from outside in and on", "/a>/ws/l /ws/.git/ /ws/l>/s /s/",
	    "r:@root w:@ws d:/a", .want = CROSSES("/a", "/ws/l") },
	{ "C3.6 root write", "/bin>usr/bin /usr/bin/x", "w:@root d:/bin/x",
	    .want = CROSSES("/bin/x", "/bin") },
	{ "C3.6 a missing end", "/ws/.git/ /ws/l>/s", "r:@root w:@ws d:/ws/l",
	    .want = CROSSES("/ws/l", "/ws/l") },
	{ "C3.6 a link outside", "/l>/ws/s /ws/.git/ /ws/s/",
	    "r:@root w:@ws d:/l", .want = "read w /ws r /ws/.git d /ws/s" },
	{ "C3.6 a root in a root by a link", "/w/l>/out /out/.git/ /w/.git/",
	    "r:@root w:/w w:@ws", .roots = "/w/l",
	    .want = "read w /w r /w/.git" },
	/* O4, C3.3: pins */
	{ "O4 each directory between", "/w/a/b/ws/.git/ /w/.git/",
	    "r:@root w:/w r:/w/a/b/ws",
	    .want = "read w /w r /w/.git p /w/a p /w/a/b r /w/a/b/ws" },
	{ "O4 shared", "/ws/.git/ /ws/a/b /ws/a/c",
	    "r:@root w:@ws d:/ws/a/b "
	    "d:/ws/a/c",
	    .want = "read w /ws r /ws/.git p /ws/a f /ws/a/b f /ws/a/c" },
	{ "O4 not in a read-only part", "/ws/.git/ /ws/ro/x/y/.git/",
	    "r:@root w:@ws r:/ws/ro w:/ws/ro/x/y",
	    .want = "read w /ws r /ws/.git r /ws/ro w /ws/ro/x/y "
		    "r /ws/ro/x/y/.git" },
	{ "O4 not in a denied part", "/ws/.git/ /ws/d/x/y/.git/",
	    "r:@root w:@ws d:/ws/d w:/ws/d/x/y",
	    .want = "read w /ws r /ws/.git D /ws/d w /ws/d/x/y "
		    "r /ws/d/x/y/.git" },
	{ "O4 from the root of all", "/home/u/.ssh/", "w:@root",
	    .deny = "/home/u/.ssh",
	    .want = "write p /home p /home/u d /home/u/.ssh" },
	{ "O4 order: a slash is the first byte", "/a/.git/ /a/b /a+b/x /a-/",
	    "w:@root d:/a/b d:/a+b/x d:/a-",
	    .want = "write p /a f /a/b p /a+b f /a+b/x d /a-" },
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
