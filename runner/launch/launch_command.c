/* SPDX-License-Identifier: ISC */
/* The outer launcher, which runs as the user who called it. */

#include "frames.h"
#include "launch_start.h"

/* More than any frame. */
#define FRAME_MAX_BYTES (64u << 20)

#define CHUNK_BYTES (48u << 10)

/* --- one command -------------------------------------------------------- */

static DWORD
send_frame(struct buf *frame)
{
	DWORD err = pipe_end_write(&launch_inner.to, frame->data, frame->len);

	buf_clear(frame);
	return err;
}

static DWORD WINAPI
input_thread(void *arg)
{
	struct pipe_end in = { GetStdHandle(STD_INPUT_HANDLE), NULL };
	static char bytes[CHUNK_BYTES];
	struct buf frame;
	DWORD n;

	do {
		n = pipe_end_read_some(&in, bytes, sizeof(bytes));
		buf_init(&frame, FRAME_MAX_BYTES);
		launch_put_input(&frame, bytes, n);
	} while (send_frame(&frame) == ERROR_SUCCESS && n > 0);
	return 0;
}

/* Does what a frame says. Returns true at the exit of the command. */
static bool
obey(struct args *a, int type, DWORD *exit_code)
{
	struct pipe_end out = { NULL, NULL };
	struct slice data, word;
	DWORD err;

	switch (type) {
	case 0:
		data = args_base64(a, "data_b64");
		word = args_string(a, "stream");
		out.handle = GetStdHandle(slice_equal(word, SLICE("stderr"))
					      ? STD_ERROR_HANDLE
					      : STD_OUTPUT_HANDLE);
		err = pipe_end_write(&out, data.ptr, data.len);
		if (err != ERROR_SUCCESS)
			launch_fail(LAUNCH_SPAWN, err, "writing the output");
		return false;
	case 1:
		*exit_code = (DWORD)args_u64(a, "exit_code");
		return true;
	case 2:
		data = args_string(a, "message");
		word = args_string(a, "code");
		launch_fail(xstrndup(word.ptr, word.len), 0, "%.*s",
		    (int)data.len, data.ptr);
	default:
		return false;
	}
}

static bool
take(const char *text, size_t len, DWORD *exit_code)
{
	static const char *const types[] = { "output", "exit", "error",
		"spawn_ready", NULL };
	struct json_doc doc;
	struct args a;
	int type;
	bool done = false;

	json_parse(&doc, text, len);
	args_init(&a, &doc, doc.root, "FramedMessage");
	type = args_enum(&a, "type", types);
	if (args_end(&a) == 0) {
		args_init(&a, &doc, json_get(doc.root, "payload"), "Payload");
		done = obey(&a, type, exit_code);
	}
	if (args_end(&a) < 0)
		launch_fail(LAUNCH_SPAWN, 0, "the runner speaks no frames");
	json_clear(&doc);
	return done;
}

unsigned
launch_command(const struct launch_options *o, const char *const *environment)
{
	DWORD exit_code = 0;
	bool done = false;
	struct buf frame;
	char *text;
	size_t len;

	buf_init(&frame, FRAME_MAX_BYTES);
	launch_put_spawn(&frame, o, environment);
	send_frame(&frame);
	CloseHandle(CreateThread(NULL, 0, input_thread, NULL, 0, NULL));
	while (!done && pipe_end_read_frame(&launch_inner.from, &text, &len) ==
			    FRAME_WHOLE) {
		done = take(text, len, &exit_code);
		free(text);
	}
	if (!done)
		launch_fail(LAUNCH_SPAWN, 0, "the inner launcher ended");
	launch_inner_finish();
	return exit_code;
}

/* --- frames ------------------------------------------------------------- */

static void
copy(HANDLE from, HANDLE to)
{
	struct pipe_end in = { from, NULL }, out = { to, NULL };
	_cleanup_free_ char *bytes = xmalloc(CHUNK_BYTES);
	DWORD n;

	while ((n = pipe_end_read_some(&in, bytes, CHUNK_BYTES)) > 0 &&
	       pipe_end_write(&out, bytes, n) == ERROR_SUCCESS)
		;
}

static DWORD WINAPI
relay_thread(void *arg)
{
	copy(GetStdHandle(STD_INPUT_HANDLE), launch_inner.to.handle);
	CloseHandle(launch_inner.to.handle);
	launch_inner.to.handle = NULL;
	return 0;
}

unsigned
launch_relay(void)
{
	CloseHandle(CreateThread(NULL, 0, relay_thread, NULL, 0, NULL));
	copy(launch_inner.from.handle, GetStdHandle(STD_OUTPUT_HANDLE));
	return launch_inner_finish();
}
