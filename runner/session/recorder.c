/* SPDX-License-Identifier: ISC */
/*
 * Which terminals of the session are recorded.
 */
#include "base.h"
#include "session.h"

#include "audit.h"
#include "environment.h"
#include "recording.h"
#include "request.h"

static int
begin(struct session_process *sp, const struct process_start_params *p,
    char *const argv[], char *const envp[])
{
	struct session *s = sp->session;
	char command[CONTROL_COMMAND_MAX], title[CONTROL_PROCESS_MAX + 32];
	const struct recording_title head = { .rows = p->rows,
		.cols = p->cols,
		.command = command,
		.title = title,
		.term = environment_get(envp, "TERM"),
		.shell = s->config.shell };
	struct recording *c;
	bool cut;
	int err, fd;

	snprintf(title, sizeof(title), "session %.8s, process %.*s",
	    s->config.session_id, CONTROL_PROCESS_MAX - 1, sp->id);
	fd = s->open_recording((struct slice){ sp->id, sp->id_len });
	if (fd < 0)
		return fd;
	audit_command(s, argv, command, &cut);
	c = xcalloc(1, sizeof(*c));
	err = recording_begin(
	    c, fd, s->config.record_max_bytes, s->config.record_input, &head);
	if (err < 0)
		free(c);
	else
		sp->recording = c;
	return err;
}

bool
recorder_begin(struct request *r, struct session_process *sp,
    const struct process_start_params *p, char *const argv[],
    char *const envp[])
{
	const struct session *s = r->session;
	int err;

	err = begin(sp, p, argv, envp);
	if (err == 0)
		return true;
	log_error(err, "recording a terminal");
	if (!s->config.record_required)
		return true;
	reply_error(r->channel, &r->id, RPC_INTERNAL,
	    "the terminal cannot be recorded: %s", strerror(-err));
	return false;
}

/*
 * Called after each write. If the recording ended early and the operator
 * requires it, the command is ended.
 */
static void
check(struct session_process *sp, int err)
{
	if (err == 0)
		return;
	log_error(err, "recording of a terminal ended");
	if (!sp->session->config.record_required)
		return;
	sp->unrecorded = true;
	process_kill_tree(&sp->process);
}

void
recorder_output(struct session_process *sp, const void *data, size_t len)
{
	if (sp->recording != NULL)
		check(sp, recording_output(sp->recording, data, len));
}

void
recorder_input(struct session_process *sp, const void *data, size_t len)
{
	if (sp->recording != NULL)
		check(sp, recording_input(sp->recording, data, len));
}

void
recorder_resize(struct session_process *sp, unsigned rows, unsigned cols)
{
	if (sp->recording != NULL)
		check(sp, recording_resize(sp->recording, rows, cols));
}

void
recorder_end(struct session_process *sp)
{
	if (sp->recording != NULL)
		recording_end(sp->recording);
	free(sp->recording);
	sp->recording = NULL;
}
