/* SPDX-License-Identifier: ISC */
/*
 * One small thing after another: round trips, connections, files.
 */
#include "base.h"
#include "echo.h"

void
mode_echo(struct load *l)
{
	struct peer *p = peer_open(l);
	struct figures f = { 0 };

	echo_start(p);
	echo_run(p, l->warmup, NULL);
	load_moment(l, "begin");
	echo_run(p, l->count, &f);
	load_moment(l, "end");
	figures_show("ops", (double)l->count);
	figures_show_us("echo_us", &f);
	figures_clear(&f);
}

void
mode_connect(struct load *l)
{
	struct figures f = { 0 };

	for (uint64_t i = 0; i < l->warmup; i++)
		peer_open(l);
	load_moment(l, "begin");
	for (uint64_t i = 0; i < l->count; i++) {
		uint64_t begin;

		usleep((useconds_t)(l->pause_ms * 1000));
		begin = load_clock_ns();
		peer_open(l);
		figures_add(&f, load_clock_ns() - begin);
	}
	load_moment(l, "end");
	figures_show("ops", (double)l->count);
	figures_show_us("connect_us", &f);
	figures_clear(&f);
}

/* --- Files -------------------------------------------------------------- */

static void
on_file(struct load *l, struct peer *p, const struct rpc_message *m)
{
	size_t n = message_bytes(m, "dataBase64");

	if (!l->writing && n != l->size)
		log_fatal("%zu bytes of the file came, not %llu", n,
		    (unsigned long long)l->size);
	l->done = true;
}

static void
move_file(struct peer *p, bool write, const uint8_t *content)
{
	struct load *l = p->load;
	_cleanup_free_ char *uri = xasprintf("file://%s/load.file", l->path);
	struct json_writer w;

	peer_begin(p, &w, write ? "fs/writeFile" : "fs/readFile", 1);
	json_key(&w, "path");
	json_cstring(&w, uri);
	if (write) {
		json_key_base64(&w, "dataBase64", content, l->size);
	}
	peer_send(p, &w);
	load_run(l);
}

void
mode_files(struct load *l)
{
	_cleanup_free_ uint8_t *content = xcalloc(1, l->size);
	struct peer *p = peer_open(l);
	struct figures f = { 0 };
	bool writing = l->writing;
	uint64_t begin;

	l->on_message = on_file;
	l->writing = true; /* the file must be there, and the server warm */
	move_file(p, true, content);
	l->writing = writing;
	for (uint64_t i = 0; i < l->warmup; i++)
		move_file(p, writing, content);
	load_moment(l, "begin");
	begin = load_clock_ns();
	for (uint64_t i = 0; i < l->count; i++) {
		uint64_t start = load_clock_ns();

		move_file(p, writing, content);
		figures_add(&f, load_clock_ns() - start);
	}
	figures_show("seconds", (double)(load_clock_ns() - begin) / 1e9);
	load_moment(l, "end");
	figures_show("ops", (double)l->count);
	figures_show("bytes", (double)(l->count * l->size));
	figures_show_us("file_us", &f);
	figures_clear(&f);
}
