/* SPDX-License-Identifier: ISC */
/*
 * From a vector of arguments to the one line that Windows has in its place, by
 * the rules of CommandLineToArgvW. cmd.exe and batch files have rules of their
 * own. Plain C, UTF-8 in and out.
 */
#pragma once

#include <stdbool.h>

#include "buf.h"

/* The most UTF-16 units of a line, with its NUL (CreateProcessW). */
#define COMMAND_LINE_MAX 32767

/* The longest error text. */
#define COMMAND_LINE_ERROR_MAX 200

/* Tells whether this program, without its directory, is cmd or cmd.exe. */
bool command_line_is_cmd(const char *program);

/* Tells whether cmd.exe must run this file: its name ends in .bat or .cmd. */
bool command_line_is_batch(const char *program);

/*
 * Appends the line that starts `program`, which is the path that was found, to
 * *out. argv[0] is not used. For a batch file `shell` is the path of cmd.exe
 * and the line is one for cmd.exe. Returns 0, or -EINVAL with error[] if an
 * argument cannot be passed on unchanged.
 */
int command_line_build(struct buf *out, const char *program, const char *shell,
    char *const *argv, char *error);
