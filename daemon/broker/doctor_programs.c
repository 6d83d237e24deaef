/* SPDX-License-Identifier: ISC */
/* Compares the versions in the files of execd's programs (log_version), and
 * looks who may read them. */
#include "doctor_programs.h"

#include <sys/mman.h>

#include "base.h"
#include "config.h"
#include "programs.h"

#define VERSION_BYTES 64
#define LINE	      "the same version of all programs"

/* Finds the version in what is mapped. A program that has none is older than
 * log_version. */
static void
find_version(const char *data, size_t len, char version[VERSION_BYTES])
{
	size_t mark = strlen(LOG_VERSION), left;
	const char *at = memmem(data, len, log_version, mark);

	snprintf(version, VERSION_BYTES, "an unknown version");
	if (at == NULL)
		return;
	at += mark;
	left = len - (size_t)(at - data);
	snprintf(version, VERSION_BYTES, "%.*s",
	    (int)(left < VERSION_BYTES ? left : VERSION_BYTES - 1), at);
}

/* Returns 0 or -errno. */
static int
read_version(const char *path, char version[VERSION_BYTES])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	find_version(data, (size_t)st.st_size, version);
	munmap(data, (size_t)st.st_size);
	return 0;
}

void
doctor_programs_print(void)
{
	char path[PATH_MAX], version[VERSION_BYTES];
	int differ = 0, err = 0, fd;

	for (int i = 0; i < INSTALLED_PROGRAMS && err == 0; i++) {
		fd = programs_open_one(i, path);
		/* Who needs one that is not there says so. */
		if (fd < 0)
			continue;
		close(fd);
		err = read_version(path, version);
		if (err < 0 || strcmp(version, EXECD_VERSION) == 0)
			continue;
		printf("without  " LINE ": %s is of %s, and execd-broker "
		       "of " EXECD_VERSION "; install all of them again\n",
		    path, version);
		differ++;
	}
	if (err < 0)
		printf("without  " LINE ": %s: %s; as root `execd doctor` "
		       "compares them\n",
		    path, strerror(-err));
	else if (differ == 0)
		printf("ok       " LINE ", " EXECD_VERSION "\n");
}

void
doctor_programs_warn(void)
{
	char path[PATH_MAX], all[INSTALLED_PROGRAMS * PATH_MAX];
	size_t n = 0;
	struct stat st;

	for (int i = 0; i < INSTALLED_PROGRAMS; i++) {
		_cleanup_close_ int fd = programs_open_one(i, path);

		if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IROTH))
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
			    n > 0 ? ", " : "", path);
	}
	if (n > 0)
		log_warn(0,
		    "others may read programs whose mode should be 0711: %s",
		    all);
}
