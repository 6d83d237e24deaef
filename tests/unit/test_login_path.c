/* SPDX-License-Identifier: ISC */
/*
 * login_path: what login(1) and PAM would set, by the files of several systems.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "login_path.h"
#include "util.h"

#define PAM_READS  "session required pam_env.so readenv=1\n"
#define PAM_LOCALE "session required pam_env.so envfile=/etc/default/locale\n"

static void
put(const char *etc, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", etc, name);
	if (text == NULL) {
		unlink(path);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const struct row {
	const char *defs, *environment, *login, *sshd, *path;
} rows[] = {
	{ NULL, NULL, NULL, NULL, NULL },
	{ "# ENV_PATH PATH=/no\nENV_SUPATH PATH=/sbin\n"
	  "ENV_PATH\tPATH=/usr/local/bin:/bin\n",
	    NULL, NULL, NULL, "/usr/local/bin:/bin" },
	{ "ENV_PATH /bin:/usr/bin # those\n", NULL, NULL, NULL,
	    "/bin:/usr/bin" },
	{ "ENV_PATH PATH=\n", NULL, NULL, NULL, NULL },
	{ "ENV_PATHS PATH=/no\n", NULL, NULL, NULL, NULL },
	{ "ENV_PATH PATH=/no\nENV_PATH PATH=/last\n", NULL, NULL, NULL,
	    "/last" },
	/* Nobody reads the file. */
	{ "ENV_PATH PATH=/bin\n", "PATH=/opt/bin\n", NULL, NULL, "/bin" },
	{ "ENV_PATH PATH=/bin\n", "PATH=/opt/bin\n", PAM_LOCALE, NULL, "/bin" },
	{ "ENV_PATH PATH=/bin\n", "PATH=/opt/bin\n", "# " PAM_READS, NULL,
	    "/bin" },
	{ "ENV_PATH PATH=/bin\n", "PATH=/opt/bin\n",
	    "auth required pam_env.so readenv=0\n", NULL, "/bin" },
	/* PAM does, for one service or another. */
	{ "ENV_PATH PATH=/bin\n", "PATH=/opt/bin\n", PAM_LOCALE PAM_READS, NULL,
	    "/opt/bin" },
	{ NULL, "A=1\nPATH=\"/opt/bin:/bin\"\n", NULL,
	    "auth required pam_env.so\n", "/opt/bin:/bin" },
	{ NULL, "PATH=/no\nexport PATH='/a b:/c' # last\n", PAM_READS, NULL,
	    "/a b:/c" },
	{ "ENV_PATH PATH=/bin\n", "XPATH=/opt\nLANG=C", PAM_READS, NULL,
	    "/bin" },
	{ NULL, "PATH=/no/newline", PAM_READS, NULL, "/no/newline" },
};

static void
test_files(void **state)
{
	char etc[] = "/tmp/test_login_path.XXXXXX", pam[64];

	assert_non_null(mkdtemp(etc));
	snprintf(pam, sizeof(pam), "%s/pam.d", etc);
	assert_int_equal(mkdir(pam, 0700), 0);
	for (size_t i = 0; i < nitems(rows); i++) {
		char *path;

		put(etc, "login.defs", rows[i].defs);
		put(etc, "environment", rows[i].environment);
		put(etc, "pam.d/login", rows[i].login);
		put(etc, "pam.d/sshd", rows[i].sshd);
		path = login_path(etc);
		if (rows[i].path == NULL)
			assert_null(path);
		else
			assert_string_equal(path, rows[i].path);
		free(path);
	}
	put(etc, "login.defs", NULL);
	put(etc, "environment", NULL);
	put(etc, "pam.d/login", NULL);
	put(etc, "pam.d/sshd", NULL);
	assert_int_equal(rmdir(pam), 0);
	assert_int_equal(rmdir(etc), 0);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
