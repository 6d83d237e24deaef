/* SPDX-License-Identifier: ISC */
/*
 * resolve: what binds to what, the base, who decides, links. Rows name the
 * rule of doc/sandbox.md they show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "resolve_rows.h"

#define SYSTEM "/usr/bin/ /etc/ /bin>usr/bin /lib/ /ws/.git/ "

static const struct resolve_case rows[] = {
	/* A3: roots and policy cwd */
	{ "A3 policy cwd", "/p/x.env /ws/x.env", "r:@root d:*x.env",
	    .policy_cwd = "/p", .want = "read f /p/x.env" },
	{ "A3 else the command's", "/p/x.env /ws/x.env", "r:@root d:*x.env",
	    .want = "read f /ws/x.env" },
	{ "A9 fs without a cwd", .entries = "w:@ws", .no_cwd = true,
	    .want = "!file system sandbox context with dynamic permissions "
		    "requires cwd" },
	{ "A9 fs, relative pattern", .entries = "d:*x", .no_cwd = true,
	    .want = "!file system sandbox context with dynamic permissions "
		    "requires cwd" },
	{ "A9 fs, ~ pattern", .entries = "d:*~/x", .no_cwd = true,
	    .want = "!file system sandbox context with dynamic permissions "
		    "requires cwd" },
	{ "A9 fs, roots pattern", .entries = "d:*codex-project-roots://x",
	    .no_cwd = true,
	    .want = "!file system sandbox context with dynamic permissions "
		    "requires cwd" },
	{ "A9 fs, static policy", .entries = "r:@root w:/ws d:*/ws/x",
	    .no_cwd = true, .want = "read w /ws r /ws/.git" },
	{ "A9 fs with a cwd", .entries = "r:@root w:@ws", .no_cwd = true,
	    .policy_cwd = "/ws", .want = "read w /ws r /ws/.git" },
	{ "A9 foreign policy cwd", .entries = "r:@root",
	    .policy_cwd = "file://host/x",
	    .want = "!failed to prepare process sandbox: invalid sandbox "
		    "policy cwd: 'file://host/x' is invalid on 'linux'" },
	{ "A9 foreign path", .entries = "r:file://host/x",
	    .want = "!failed to prepare process sandbox: invalid sandbox "
		    "path: 'file://host/x' is invalid on 'linux'" },
	{ "A9 foreign root", .entries = "r:@root w:@ws", .roots = "file://h/x",
	    .want = "!failed to prepare process sandbox: invalid sandbox "
		    "workspace root: 'file://h/x' is invalid on 'linux'" },
	/* A6: symbols */
	{ "A6 root", .entries = "r:@root", .want = "read" },
	{ "A6 minimal", SYSTEM, "r:@min",
	    .want = "empty minimal r /bin r /etc r /lib r /usr" },
	{ "A6 minimal never writes", SYSTEM, "w:@min",
	    .want = "empty minimal r /bin r /etc r /lib r /usr" },
	{ "A6 minimal denied", SYSTEM, "r:@root d:@min",
	    .want = "read d /etc d /lib d /usr" },
	{ "A6 minimal, system profile",
	    "/nix/store/ /run/current-system/sw>"
	    "/nix/store/x /nix/store/x/",
	    "r:@min",
	    .want = "empty minimal r /nix/store r /run/current-system/sw" },
	{ "A6 minimal in a readable tree", SYSTEM, "r:@root r:@min",
	    .want = "read" },
	{ "A6 project roots", "/a/.git/ /b/.git/", "r:@root w:@ws",
	    .roots = "/b /a", .want = "read w /a r /a/.git w /b r /b/.git" },
	{ "A6 cwd is project roots", "/a/.git/ /ws/", "r:@root w:@cwd",
	    .roots = "/a", .want = "read w /a r /a/.git" },
	{ "A6 no roots, no fallback", .entries = "r:@root w:@ws", .roots = "",
	    .want = "read" },
	{ "A9 roots that do not exist", "/a/.git/", "r:@root w:@ws",
	    .roots = "/a /gone", .want = "read w /a r /a/.git" },
	{ "A9 the same root twice", "/a/.git/", "r:@root w:@ws w:@ws",
	    .roots = "/a /a", .want = "read w /a r /a/.git" },
	{ "A6 subpath", "/ws/sub/.git/ /ws/.git/", "r:@root w:@ws:sub",
	    .want = "read w /ws/sub r /ws/sub/.git" },
	{ "A6 subpath of each root", "/a/s/.git/ /b/s/.git/", "r:@root w:@ws:s",
	    .roots = "/a /b",
	    .want = "read w /a/s r /a/s/.git w /b/s r /b/s/.git" },
	{ "A6 subpath upwards", "/ws/.git/ /x/", "r:@root w:@ws:../x",
	    .want = "read" },
	{ "A6 subpath up and down", "/ws/a/ /ws/b/", "r:@root w:@ws:a/../b",
	    .want = "read" },
	{ "A6 absolute subpath", "/ws/.git/ /x/", "r:@root w:@ws:/x",
	    .want = "read" },
	{ "A6 empty subpath",
	    .entries = "r:@root w:@ws:", .want = "read w /ws r /ws/.git" },
	{ "A6 dots are names", "/ws/..x/.git/", "r:@root w:@ws:./..x/",
	    .want = "read w /ws/..x r /ws/..x/.git" },
	{ "O8 tmpdir is the executor's", "/t/.git/", "r:@root w:@tmpdir",
	    .tmpdir = "/t", .want = "read w /t" },
	{ "A6 no tmpdir", .entries = "r:@root w:@tmpdir", .want = "read" },
	{ "O15 tmpdir missing", .entries = "r:@root w:@tmpdir",
	    .tmpdir = "/gone", .want = "read" },
	{ "O15 tmpdir relative", .entries = "r:@root w:@tmpdir", .tmpdir = "ws",
	    .want = "read" },
	{ "O15 tmpdir is the root", .entries = "r:@root w:@tmpdir",
	    .tmpdir = "/", .want = "read" },
	{ "A6 tmp", "/tmp/.git/", "r:@root w:@tmp", .want = "read w /tmp" },
	{ "E tmp of its own", "/tmp/.git/ /tmp/x/", "r:@root w:@tmp",
	    .private_tmp = true, .want = "read t /tmp" },
	{ "E what is named in it is the host's", "/tmp/a/ws/.git/ /tmp/f",
	    "r:@root w:@tmp w:@ws r:/tmp/f", "/tmp/a/ws", .private_tmp = true,
	    .want = "read t /tmp w /tmp/a/ws r /tmp/a/ws/.git r /tmp/f" },
	{ "E what is missing or denied in it is not there anyway", "/tmp/d/",
	    "r:@root w:@tmp d:/tmp/d d:/tmp/m w:/tmp/n", .private_tmp = true,
	    .want = "read t /tmp" },
	{ "E by its name, too", "/tmp/x", "r:@root w:/tmp", .private_tmp = true,
	    .want = "read t /tmp" },
	{ "E only where it is writable", "/tmp/x", "r:@root r:@tmp",
	    .private_tmp = true, .want = "read" },
	{ "E tmpdir of its own", "/t/x /tmp/.git/", "r:@root w:@tmp w:@tmpdir",
	    .tmpdir = "/t", .private_tmpdir = true,
	    .want = "read t /t w /tmp" },
	{ "E tmpdir in a tmp of its own", "/tmp/t/x",
	    "r:@root w:@tmp w:@tmpdir", .tmpdir = "/tmp/t", .private_tmp = true,
	    .private_tmpdir = true, .want = "read t /tmp t /tmp/t" },
	{ "A6 tmp is no directory", "/tmp", "r:@root w:@tmp", .want = "read" },
	{ "A6 unknown", .entries = "r:@root w:@unknown", .want = "read" },
	{ "A5 patterns only deny", "/ws/x", "r:@root w:*x r:*x",
	    .want = "read" },
	/* A10.3: the base */
	{ "A10.3 nothing", .entries = "", .want = "empty" },
	{ "A10.3 root write", .entries = "w:@root", .want = "write" },
	{ "A10.3 root by its path", .entries = "w:/", .want = "write" },
	{ "A10.3 root read and deny", .entries = "r:@root d:@root",
	    .want = "empty" },
	{ "A10.3 root deny alone", .entries = "d:@root", .want = "empty" },
	{ "A10.3 read with deny", "/s/", "r:@root d:/s", .want = "read d /s" },
	{ "A10.3 only read entries", "/a/ /b/", "r:/a r:/b",
	    .want = "empty r /a r /b" },
	{ "A10.3 write without root", .entries = "w:/ws",
	    .want = "empty w /ws r /ws/.git" },
	{ "A9 root write and more", "/ws/.git/ /s/", "w:@root w:@ws d:/s",
	    .want = "write d /s p /ws r /ws/.git" },
	{ "A4 unrestricted", .unrestricted = true, .want = "write" },
	{ "A4 external", .type = SANDBOX_EXTERNAL, .unrestricted = true,
	    .net = true, .want = "write net" },
	/* A10.4: the most specific entry decides */
	{ "A10.4 down and down", "/repo/a/b/c/ /repo/.git/ /repo/a/b/.git/",
	    "r:@root w:/repo d:/repo/a w:/repo/a/b r:/repo/a/b/c",
	    .want = "read w /repo r /repo/.git D /repo/a w /repo/a/b "
		    "r /repo/a/b/.git r /repo/a/b/c" },
	{ "A10.4 in the other order",
	    "/repo/a/b/c/ /repo/.git/ /repo/a/b/.git/",
	    "r:/repo/a/b/c w:/repo/a/b d:/repo/a w:/repo r:@root",
	    .want = "read w /repo r /repo/.git D /repo/a w /repo/a/b "
		    "r /repo/a/b/.git r /repo/a/b/c" },
	{ "A10.4 write and read", .entries = "r:@root r:/ws w:/ws",
	    .want = "read w /ws r /ws/.git" },
	{ "A10.4 write and deny", .entries = "r:@root w:/ws d:/ws",
	    .want = "read d /ws" },
	{ "A10.4 read and deny", "/s", "r:@root r:/s d:/s",
	    .want = "read f /s" },
	{ "A10.4 a longer name is no child", "/a/.git/ /ab/", "r:@root w:/a",
	    .want = "read w /a r /a/.git" },
	{ "A10.4 says nothing new", "/a/b/", "r:@root r:/a r:/a/b",
	    .want = "read" },
	/* A10.7, O14 */
	{ "A10.7 missing write", .entries = "r:@root w:/gone w:/ws/gone",
	    .want = "read" },
	{ "A10.7 missing read and deny", .entries = "r:@root r:/x d:/y",
	    .want = "read" },
	{ "O14 write a file", "/out/f /out/g", "r:@root w:/out/f",
	    .want = "read w /out/f" },
	{ "O14 below a file", "/out/f", "r:@root w:/out/f/x", .want = "read" },
	{ "O14 a file of a writable root", "/ws/f /ws/.git/",
	    "r:@root w:/ws w:/ws/f", .want = "read w /ws r /ws/.git" },
	{ "A10.7 not to be looked up", "/s! /s/x/", "r:@root w:/s/x",
	    .want = "read" },
	/* A10.9: links */
	{ "A10.9 a root that is a link", "/l>real /real/.git/", "r:@root w:@ws",
	    .roots = "/l", .want = "read w /real r /real/.git" },
	{ "A10.9 under both names", "/l>real /real/.git/", "w:@ws",
	    .roots = "/l", .want = "empty r /l w /real r /real/.git" },
	{ "A10.9 a link in the middle", "/home>usr/home /usr/home/u/.git/",
	    "w:/home/u",
	    .want = "empty r /home w /usr/home/u r /usr/home/u/.git" },
	{ "A10.9 links to links", "/a>b /b>/c/d /c/d/.git/", "w:/a",
	    .want = "empty r /a r /b w /c/d r /c/d/.git" },
	{ "A10.9 upwards in a link", "/a/l>../../b/./x /b/x/.git/", "w:/a/l",
	    .want = "empty r /a/l w /b/x r /b/x/.git" },
	{ "A10.9 a link that leads out", "/ws/l>/out /out/ /ws/.git/",
	    "r:@root w:/ws w:/ws/l", .want = "read w /ws r /ws/.git" },
	{ "A10.9 a link to a protected name", "/ws/l>.git /ws/.git/",
	    "r:@root w:/ws w:/ws/l", .want = "read w /ws r /ws/.git" },
	{ "A10.9 two links through each other", "/a/l>/b /b/l>/a /a/x/ /b/x/",
	    "r:@root w:/a/l w:/b/l", .want = "read" },
	{ "A10.9 a link beside a root", "/d/l>/out /out/.git/ /d/ws/.git/",
	    "r:@root w:/d/ws w:/d/l",
	    .want = "read w /d/ws r /d/ws/.git w /out r /out/.git" },
	{ "A10.9 a link nobody may write", "/ws/ro/l>/out /out/ /ws/.git/",
	    "r:@root w:/ws r:/ws/ro d:/ws/ro/l",
	    .want = "read d /out w /ws r /ws/.git r /ws/ro" },
	{ "A9 a loop", "/a>b /b>a", "r:@root w:/a",
	    .want = "!cannot resolve sandbox path /a: Too many levels of "
		    "symbolic links (os error 40)" },
	{ "A9 a loop as a root", "/ws>ws", "r:@root w:@ws",
	    .want = "!cannot resolve sandbox path /ws: Too many levels of "
		    "symbolic links (os error 40)" },
	{ "A10.9 a dangling link", "/l>/gone", "r:@root w:/l", .want = "read" },
	/* A10.10 */
	{ "A10.10 network", .entries = "r:@root", .net = true,
	    .want = "read net" },
	/* O16, C3.8: /proc */
	{ "O16 deny /proc", "/proc/1/", "r:@root d:/proc",
	    .want = "read no-proc" },
	{ "O16 below /proc", "/proc/1/x /proc/self>1", "r:@root d:/proc/self/x",
	    .want = "read no-proc" },
	{ "O16 with minimal", SYSTEM "/proc/", "r:@min d:/proc r:/proc/x",
	    .want = "empty minimal no-proc r /bin r /etc r /lib r /usr" },
	{ "C3.8 never the host's", "/proc/1/", "r:/proc w:/proc/1",
	    .want = "empty minimal" },
	{ "C3.8 a link into /proc", "/l>/proc/1 /proc/1/", "r:@root w:/l",
	    .want = "read" },
	/* E: the operator's */
	{ "E deny_read", "/home/u/.ssh/id", "r:@root", .home = "/home/u",
	    .deny = "~/.ssh /gone", .want = "read d /home/u/.ssh" },
	{ "E deny_read, if it is there", "/h/k /h/.git/", "r:@root w:/h",
	    .home = "/h", .deny = "-~/k -~/gone -/gone/too",
	    .want = "read w /h r /h/.git f /h/k" },
	{ "E deny_read stays", "/s/x/", "w:@root w:/s/x r:/s", .deny = "/s",
	    .want = "write d /s" },
	{ "E deny_read through a link", "/ws/.git/ /ws/l>s /ws/s/",
	    "r:@root w:/ws", .deny = "/ws/l",
	    .want = "read w /ws r /ws/.git d /ws/s" },
	{ "E deny_read is the identity's home", "/a/k /b/k", "r:@root",
	    .home = "/a", .user_home = "/b", .deny = "~/k",
	    .want = "read f /a/k" },
	{ "E deny_read, relative", .deny = "x",
	    .want = "!configured sandbox path x is not absolute" },
	{ "C3.10 hide", "/run/s/", "r:@root", .hide = "/run",
	    .want = "read d /run" },
	{ "C3.10 hide, not there", .entries = "w:@root", .hide = "/run",
	    .want = "write" },
	{ "C3.10 reopened below", "/run/s/.git/", "r:@root w:/run/s",
	    .hide = "/run", .want = "read D /run w /run/s r /run/s/.git" },
	{ "C3.10 reopened", "/run/s/", "r:@root r:/run", .hide = "/run",
	    .want = "read" },
	{ "C3.10 unrestricted", "/run/s/", .unrestricted = true, .hide = "/run",
	    .want = "write d /run" },
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
