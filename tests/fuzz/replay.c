/* SPDX-License-Identifier: ISC */
/*
 * replay: the fuzz targets without libFuzzer. Every file of a corpus runs as
 * it is and in a fixed number of small mutations, the same ones every time:
 * they come from the file's name, not from a clock.
 */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define MUTATIONS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t files, inputs;
static char running[4096]; /* what a crash is to blame on */

static void
on_abort(int signo)
{
	ssize_t n = write(STDERR_FILENO, running, strlen(running));

	(void)n;
	signal(signo, SIG_DFL);
	raise(signo);
}

/* A copy of exactly that size, so that a sanitizer sees the first byte
 * beyond it. */
static void
run(const uint8_t *data, size_t len, const char *path, int mutation)
{
	_cleanup_free_ uint8_t *copy = xmalloc(len);

	snprintf(running, sizeof(running), "replay: %s, mutation %d\n", path,
	    mutation);
	if (len > 0)
		memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(copy, len);
	inputs++;
}

static uint64_t
seed_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t seed = 0xcbf29ce484222325;

	for (const char *s = slash ? slash + 1 : path; *s != '\0'; s++)
		seed = (seed ^ (unsigned char)*s) * 0x100000001b3;
	return seed ? seed : 1;
}

/* xorshift64: a number below `bound`, which is not 0. */
static size_t
pick(uint64_t *state, size_t bound)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (size_t)((*state >> 16) % bound);
}

/* Out goes a piece. */
static size_t
cut(uint8_t *data, size_t len, uint64_t *state)
{
	size_t at = pick(state, len);
	size_t n = 1 + pick(state, len - at);

	memmove(data + at, data + at + n, len - at - n);
	return len - n;
}

/* Two neighbours change places: [a, b) and [b, c). */
static void
swap(uint8_t *data, size_t len, uint64_t *state)
{
	size_t a = pick(state, len), c = a + 1 + pick(state, len - a);
	size_t b = a + pick(state, c - a);
	_cleanup_free_ uint8_t *first = xmalloc(b - a + 1);

	memcpy(first, data + a, b - a);
	memmove(data + a, data + b, c - b);
	memcpy(data + a + (c - b), first, b - a);
}

static size_t
mutate(uint8_t *data, size_t len, uint64_t *state)
{
	static const char telling[] = "\"\\{}[],:0-9/.%=\r\n\x00\x7f\x80\xff";

	switch (len > 0 ? pick(state, 5) : 5) {
	case 0:
		data[pick(state, len)] ^= (uint8_t)(1 << pick(state, 8));
		break;
	case 1:
		data[pick(state, len)] = (uint8_t)pick(state, 256);
		break;
	case 2:
		data[pick(state, len)] =
		    (uint8_t)telling[pick(state, sizeof(telling) - 1)];
		break;
	case 3:
		len = cut(data, len, state);
		break;
	case 4:
		swap(data, len, state);
		break;
	}
	return len;
}

static void
run_mutations(const uint8_t *data, size_t len, const char *path)
{
	_cleanup_free_ uint8_t *work = xmalloc(len + 1);
	uint64_t state = seed_of(path);

	for (int i = 1; i <= MUTATIONS; i++) {
		size_t n = len, steps = 1 + pick(&state, 3);

		memcpy(work, data, len);
		while (steps-- > 0)
			n = mutate(work, n, &state);
		run(work, n, path, i);
	}
}

static int
replay_file(const char *path)
{
	_cleanup_free_ uint8_t *data = NULL;
	FILE *f = fopen(path, "re");
	struct stat st;
	size_t len;

	if (f == NULL || fstat(fileno(f), &st) < 0) {
		perror(path);
		return -1;
	}
	data = xmalloc((size_t)st.st_size + 1);
	len = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	run(data, len, path, 0);
	run_mutations(data, len, path);
	files++;
	return 0;
}

static int
replay_entry(const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return replay_file(path);
}

static int
replay_directory(const char *dir)
{
	struct dirent **entries;
	size_t before = files;
	int n = scandir(dir, &entries, NULL, alphasort), err = 0;

	if (n < 0) {
		perror(dir);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		if (replay_entry(dir, entries[i]->d_name) < 0)
			err = -1;
		free(entries[i]);
	}
	free(entries);
	if (files == before) {
		fprintf(stderr, "%s: no files\n", dir);
		return -1;
	}
	return err;
}

int
main(int argc, char *argv[])
{
	struct stat st;
	int err = 0;

	signal(SIGABRT, on_abort);
	for (int i = 1; i < argc; i++) {
		bool is_file = stat(argv[i], &st) == 0 && S_ISREG(st.st_mode);

		if ((is_file ? replay_file(argv[i])
			     : replay_directory(argv[i])) < 0)
			err = 1;
	}
	printf("%zu files, %zu inputs\n", files, inputs);
	return err || files == 0;
}
