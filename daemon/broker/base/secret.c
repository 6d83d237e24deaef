/* SPDX-License-Identifier: ISC */
#include "secret.h"

#include <sys/mman.h>

#include "conf_value.h"
#include "spawn_client.h"

/* Whoever can read a secret has it. A file of root's may be readable by a
 * group, as keys usually are. Nobody decided this for the group of another
 * owner. */
static int
check_readers(const char *path, enum secret_kind kind, mode_t mode, char *why)
{
	mode_t readers = S_IROTH | (mode & COPY_OF_ROOTS ? 0 : S_IRGRP);

	if (kind == SECRET_PUBLIC || !(mode & readers))
		return 0;
	snprintf(why, CONF_WHY_MAX,
	    "is a secret that others can read (mode %04o): chmod 600",
	    (unsigned)mode & 0777);
	if (kind == SECRET_PRIVATE)
		return -EINVAL;
	log_warn(0, "%s: %s", path, why);
	return 0;
}

/* It may be meant, so it is told and not refused. */
static void
tell_group(const char *path, enum secret_kind kind, mode_t mode)
{
	if (kind != SECRET_PUBLIC && mode & S_IRGRP)
		log_info("%s: its group can read this secret, too", path);
}

int
secret_open(const char *path, enum secret_kind kind, char *why)
{
	struct control_found found;
	mode_t mode;
	_cleanup_close_ int fd = spawn_file(path, &mode, &found);
	int err = fd;

	if (fd < 0) {
		conf_refuse(why, "%s", found.why);
		return err;
	}
	if (check_readers(path, kind, mode, why) < 0)
		return -EINVAL;
	tell_group(path, kind, mode);
	return steal_fd(&fd);
}

int
secret_read(const char *path, enum secret_kind kind, size_t limit,
    uint8_t **data, size_t *len, char *why)
{
	_cleanup_close_ int fd = secret_open(path, kind, why);
	size_t n = 0;
	ssize_t got = 1;
	uint8_t *text;

	if (fd < 0)
		return fd;
	text = xmalloc(limit + 1);
	while (got > 0 && n <= limit) {
		got = read(fd, text + n, limit + 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (got < 0 || n > limit) {
		if (got < 0)
			conf_refuse(why, "%s", strerror(errno));
		else
			conf_refuse(why, "is longer than %zu bytes", limit);
		secret_free(text, n);
		return got < 0 ? -EIO : -EINVAL;
	}
	text[n] = '\0';
	*data = text;
	*len = n;
	return 0;
}

static bool
is_white(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int
secret_read_trimmed(const char *path, enum secret_kind kind, uint8_t **data,
    size_t *len, char *why)
{
	uint8_t *from;
	size_t n;
	int err = secret_read(path, kind, SECRET_FILE_MAX, data, len, why);

	if (err < 0)
		return err;
	from = *data;
	n = *len;
	for (; n > 0 && is_white(*from); n--)
		from++;
	while (n > 0 && is_white(from[n - 1]))
		n--;
	memmove(*data, from, n);
	(*data)[n] = '\0';
	*len = n;
	if (n > 0)
		return 0;
	secret_free(*data, n);
	*data = NULL;
	return conf_refuse(why, "must not be empty");
}

void
secret_free(void *data, size_t len)
{
	if (data != NULL)
		explicit_bzero(data, len);
	free(data);
}

int
secret_memfd(const char *name, const void *data, size_t len)
{
	_cleanup_close_ int fd =
	    memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (write(fd, data, len) != (ssize_t)len)
		return -EIO;
	if (fcntl(fd, F_ADD_SEALS,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return steal_fd(&fd);
}
