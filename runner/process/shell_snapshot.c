/* SPDX-License-Identifier: ISC */
/* The texts that take the state of a login shell, and that restore it. */
#include "shell_snapshot.h"

#include <sys/mman.h>
#include <sys/random.h>

struct snapshot_shell {
	const char *name;
	/* Reads the file of interactive shells, too. */
	const char *read;
	/* Prints functions, aliases and options as commands. A text of the user
	 * may have given its names to functions, hence `builtin`. */
	const char *print;
	const char *flags;
	const char *before; /* the state is read */
	/*
	 * zsh reads a whole text before it carries out the first line of it, so
	 * aliases and patterns of the state count only in a text of its own.
	 */
	bool evaluates;
};

/*
 * Without /proc no command could read its state, so then there is none. The
 * options of shopt and setopt that cannot be set say so on standard error.
 */
static const struct snapshot_shell shells[] = {
	{ "bash", "if [[ -r ~/.bashrc ]]; then . ~/.bashrc; fi",
	    "\\builtin printf '{\\n'; \\builtin shopt -p\n"
	    "\\builtin printf '} 2>/dev/null\\n'; \\builtin declare -f\n"
	    "\\builtin declare -Fx; \\builtin alias -p; \\builtin set +o\n",
	    "-pc", "set +o privileged", false },
	{ "zsh",
	    "if [[ -r ${ZDOTDIR:-$HOME}/.zshrc ]]; then "
	    ". ${ZDOTDIR:-$HOME}/.zshrc; fi",
	    "\\builtin printf '{\\n'\n"
	    "\\builtin printf 'setopt %s\\n' $(\\builtin setopt)\n"
	    "\\builtin printf '} 2>/dev/null\\n'; \\builtin functions\n"
	    "\\builtin alias -L\n",
	    "-fc", "setopt RCS", true },
	/* One that cannot print its functions has no state. */
	{ "sh", "if [ -r \"${ENV-}\" ]; then . \"$ENV\"; fi",
	    "\\typeset -f || \\exit\n"
	    "\\alias -p; \\set +o\n",
	    "-c", ":", false },
};

const struct snapshot_shell *
shell_snapshot_find(struct slice name)
{
	for (size_t i = 0; i < nitems(shells); i++)
		if (slice_equal(name, slice_of(shells[i].name)))
			return &shells[i];
	return NULL;
}

/* --- it is taken -------------------------------------------------------- */

void
shell_snapshot_nonce(char nonce[SNAPSHOT_NONCE_CHARS + 1])
{
	uint8_t bytes[SNAPSHOT_NONCE_CHARS];

	/* So few bytes are never cut (getrandom(2)). */
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		nonce[i] = (char)('a' + bytes[i] % 16);
	nonce[SNAPSHOT_NONCE_CHARS] = '\0';
}

/* The user's traps must not print between the lines of the state. */
char *
shell_snapshot_script(const struct snapshot_shell *shell, const char *nonce)
{
	bool sh = shell->flags[1] == 'c';

	return xasprintf("[ -r /proc/self/fd/0 ] || exit\n"
			 "{ %s; } </dev/null >/dev/null 2>&1\n"
			 "\\%strap - %sEXIT\n"
			 "\\%sprintf '\\0%s\\0'\n"
			 "%s"
			 "\\%sprintf '\\0'\n"
			 "\\%scommand -p env -0\n"
			 "\\%sprintf '\\0%s\\0'\n",
	    shell->read, sh ? "" : "builtin ", sh ? "" : "DEBUG ERR ",
	    sh ? "" : "builtin ", nonce, shell->print, sh ? "" : "builtin ",
	    sh ? "" : "builtin ", sh ? "" : "builtin ", nonce);
}

/* Set by each shell itself, or restored as a function. */
static bool
is_the_shells(const char *variable)
{
	static const char *const names[] = {
		"_=", "SHLVL=", "PWD=", "OLDPWD=", "BASH_FUNC_"
	};

	for (size_t i = 0; i < nitems(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/*
 * text[len] consists of strings that end with a NUL, and a NUL stands before
 * it. Returns 0 or -errno.
 */
static int
take_exports(
    const char *text, size_t len, const struct buf *began, char ***exports)
{
	const char *end = text + len;
	size_t n = 0, size;
	char **list, *at;

	if (len == 0 || end[-1] != '\0')
		return -ENODATA;
	for (const char *s = text; s < end; s += size, n++) {
		size = strlen(s) + 1;
		if (size > SNAPSHOT_STRING_MAX || len > SNAPSHOT_EXPORTS_MAX)
			return -E2BIG;
	}
	*exports = list = xmalloc((n + 1) * sizeof(char *) + len);
	at = memcpy(list + n + 1, text, len);
	for (const char *s = text; s < end; s += size, at += size) {
		size = strlen(s) + 1;
		if (!is_the_shells(s) &&
		    memmem(began->data, began->len, s - 1, size + 1) == NULL)
			*list++ = at;
	}
	*list = NULL;
	return 0;
}

/* Nobody can change the memory any more, whoever has a descriptor of it. */
static int
write_state(const char *text, size_t len)
{
	static const char first[] = "exec 3<&-\n", last[] = "\n:\n";
	_cleanup_close_ int fd =
	    memfd_create("shell-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int seals =
	    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct buf b;
	int err = fd < 0 ? -errno : 0;

	buf_init(&b, SNAPSHOT_OUTPUT_MAX + sizeof(first) + sizeof(last));
	buf_puts(&b, first);
	buf_put(&b, text, len);
	buf_puts(&b, last);
	if (err == 0 && write(fd, b.data, b.len) != (ssize_t)b.len)
		err = -ENOSPC;
	if (err == 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		err = -errno;
	buf_clear(&b);
	return err < 0 ? err : steal_fd(&fd);
}

int
shell_snapshot_take(const struct buf *output, const char *nonce,
    const struct buf *began, struct shell_state *state)
{
	char mark[SNAPSHOT_NONCE_CHARS + 2];
	const size_t size = sizeof(mark);
	const char *text, *end, *exports;
	int err;

	/* With the NULs around it. */
	mark[0] = '\0';
	memcpy(mark + 1, nonce, SNAPSHOT_NONCE_CHARS + 1);
	text = output->len > 0 ? memmem(output->data, output->len, mark, size)
			       : NULL;
	if (text == NULL)
		return -ENODATA;
	text += size;
	end = (const char *)output->data + output->len;
	end = memmem(text, (size_t)(end - text), mark, size);
	exports = end != NULL ? memchr(text, '\0', (size_t)(end - text)) : NULL;
	if (exports == NULL)
		return -ENODATA;
	exports++;
	err = take_exports(
	    exports, (size_t)(end - exports), began, &state->exports);
	if (err < 0)
		return err;
	state->fd = write_state(text, (size_t)(exports - 1 - text));
	if (state->fd < 0) {
		free(state->exports);
		state->exports = NULL;
		return steal_fd(&state->fd);
	}
	return 0;
}

void
shell_state_clear(struct shell_state *state)
{
	free(state->exports);
	state->exports = NULL;
	if (state->fd >= 0)
		close(steal_fd(&state->fd));
}

/* --- it is restored ----------------------------------------------------- */

const char *
shell_snapshot_flags(const struct snapshot_shell *shell)
{
	return shell->flags;
}

static void
put_quoted(struct buf *b, struct slice text)
{
	buf_puts(b, "eval '");
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] == '\'')
			buf_puts(b, "'\\''");
		else
			buf_put_u8(b, (uint8_t)text.ptr[i]);
	buf_puts(b, "'");
}

char *
shell_snapshot_restore(const struct snapshot_shell *shell, struct slice text)
{
	struct buf b;

	buf_init(&b, SNAPSHOT_STRING_MAX);
	buf_printf(&b,
	    "%s; if ! . /proc/self/fd/3 >/dev/null; then printf "
	    "'failed to restore shell snapshot\\n' >&2; fi\n",
	    shell->before);
	if (shell->evaluates)
		put_quoted(&b, text);
	else
		buf_put(&b, text.ptr, text.len);
	buf_put_u8(&b, '\0');
	if (!b.failed)
		return (char *)b.data;
	buf_clear(&b);
	return NULL;
}
