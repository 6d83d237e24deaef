/* SPDX-License-Identifier: ISC */
/*
 * Stands where one of execd's programs does and becomes it, NAME.real, with
 * what the file `environment` beside it says: execd gives its programs an
 * environment of its own making.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	char path[PATH_MAX], line[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	FILE *f;

	if (n < 0)
		return 1;
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, "environment");
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strchr(line, '=') != NULL)
			putenv(strdup(line));
	}
	if (f != NULL)
		fclose(f);
	if (readlink("/proc/self/exe", path, sizeof(path)) != n)
		return 1;
	strcpy(path + n, ".real");
	execv(path, argv);
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return 1;
}
