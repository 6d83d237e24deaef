/* SPDX-License-Identifier: ISC */
/*
 * conf: any text is read to its end or refused; what is taken is shown as a
 * text that is taken as well and shows the same.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* NULL: refused. */
static struct conf *
read_text(const void *data, size_t len)
{
	_cleanup_close_ int fd = secret_memfd("conf", data, len);
	struct conf *c = conf_new();
	char path[64];

	/* A memfd belongs to everybody; such a file is refused unread. */
	assert(fd >= 0 && fchmod(fd, 0600) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (conf_read(c, path) == 0)
		return c;
	conf_free(c);
	return NULL;
}

static void
check_shown(const struct conf *c)
{
	struct buf once, twice;
	struct conf *again;

	buf_init(&once, SIZE_MAX);
	buf_init(&twice, SIZE_MAX);
	conf_print(c, &once);
	again = read_text(once.data, once.len);
	assert(again != NULL);
	conf_print(again, &twice);
	assert(once.len == twice.len &&
	       memcmp(once.data, twice.data, once.len) == 0);
	assert(conf_log_changes(c, again) == 0);
	conf_free(again);
	buf_clear(&once);
	buf_clear(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int quiet = -1;
	struct conf *c;

	/* Every refusal is a line of the log. */
	if (quiet < 0 && (quiet = open("/dev/null", O_WRONLY)) >= 0)
		dup2(quiet, STDERR_FILENO);
	c = read_text(data, len);
	if (c != NULL)
		check_shown(c);
	conf_free(c);
	return 0;
}
