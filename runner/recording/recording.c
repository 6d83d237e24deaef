/* SPDX-License-Identifier: ISC */
#include "recording.h"

#include "json.h"

/* Reserved for the line that says that the limit was reached. */
#define LAST_LINE_BYTES 256

static void
stop(struct recording *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/*
 * A line that was written only in part would be invalid, so the recording ends.
 */
static int
write_line(struct recording *c, const struct buf *line)
{
	ssize_t n = write(c->fd, line->data, line->len);

	if (n == (ssize_t)line->len)
		return 0;
	n = n < 0 ? -errno : -ENOSPC;
	stop(c);
	return (int)n;
}

static void
make_event(struct recording *c, struct buf *line, const char *code,
    const void *data, size_t len)
{
	int64_t us = now_us() - c->began_us;
	struct json_writer w;
	char at[32];
	int n;

	buf_init(line, SIZE_MAX);
	json_writer_init(&w, line);
	json_begin(&w, '[');
	n = snprintf(at, sizeof(at), "%lld.%06lld", (long long)(us / 1000000),
	    (long long)(us % 1000000));
	json_raw(&w, at, (size_t)n);
	json_cstring(&w, code);
	json_string(&w, data, len);
	json_end(&w, ']');
	buf_puts(line, "\n");
}

static int
write_event(struct recording *c, const char *code, const void *data, size_t len)
{
	static const char full[] = "recording ended: it has reached its limit";
	struct buf line;
	int err;

	make_event(c, &line, code, data, len);
	if (line.len <= c->room_bytes) {
		c->room_bytes -= line.len;
		err = write_line(c, &line);
	} else {
		buf_clear(&line);
		make_event(c, &line, "m", full, strlen(full));
		write_line(c, &line);
		stop(c);
		err = -EFBIG;
	}
	buf_clear(&line);
	return err;
}

int
recording_begin(struct recording *c, int fd, uint64_t max_bytes, bool input,
    const struct recording_title *title)
{
	struct json_writer w;
	struct buf line;
	int err;

	*c = (struct recording){ .fd = fd,
		.began_us = now_us(),
		.room_bytes = max_bytes - LAST_LINE_BYTES,
		.input = input };
	buf_init(&line, SIZE_MAX);
	json_writer_init(&w, &line);
	json_begin(&w, '{');
	json_key_u64(&w, "version", 2);
	json_key_u64(&w, "width", title->cols);
	json_key_u64(&w, "height", title->rows);
	json_key_i64(&w, "timestamp", time(NULL));
	json_key_cstring(&w, "command", title->command);
	json_key_cstring(&w, "title", title->title);
	json_key_begin(&w, "env", '{');
	if (title->term != NULL)
		json_key_cstring(&w, "TERM", title->term);
	if (title->shell != NULL)
		json_key_cstring(&w, "SHELL", title->shell);
	json_end(&w, '}');
	json_end(&w, '}');
	buf_puts(&line, "\n");
	c->room_bytes -= line.len < c->room_bytes ? line.len : c->room_bytes;
	err = write_line(c, &line);
	buf_clear(&line);
	return err;
}

/* Returns how many bytes at the end begin a character without completing it. */
static size_t
unfinished(const uint8_t *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		uint8_t b = p[n - back];
		size_t need = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;

		if ((b & 0xc0) != 0x80)
			return need > back ? back : 0;
	}
	return 0;
}

static int
write_text(struct recording *c, const char *code, struct recording_rest *rest,
    const uint8_t *data, size_t len)
{
	struct buf text;
	size_t keep;
	int err = 0;

	buf_init(&text, SIZE_MAX);
	buf_put(&text, rest->bytes, rest->len);
	buf_put(&text, data, len);
	keep = unfinished(text.data, text.len);
	rest->len = keep;
	memcpy(rest->bytes, text.data + text.len - keep, keep);
	if (text.len > keep)
		err = write_event(c, code, text.data, text.len - keep);
	buf_clear(&text);
	return err;
}

int
recording_output(struct recording *c, const void *data, size_t len)
{
	return c->fd < 0 || len == 0
		   ? 0
		   : write_text(c, "o", &c->output_rest, data, len);
}

int
recording_input(struct recording *c, const void *data, size_t len)
{
	return c->fd < 0 || !c->input || len == 0
		   ? 0
		   : write_text(c, "i", &c->input_rest, data, len);
}

int
recording_resize(struct recording *c, unsigned rows, unsigned cols)
{
	char size[32];
	int n = snprintf(size, sizeof(size), "%ux%u", cols, rows);

	return c->fd < 0 ? 0 : write_event(c, "r", size, (size_t)n);
}

void
recording_end(struct recording *c)
{
	if (c->fd >= 0 && c->output_rest.len > 0)
		write_event(c, "o", c->output_rest.bytes, c->output_rest.len);
	stop(c);
}
