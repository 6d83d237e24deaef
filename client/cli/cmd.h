/* SPDX-License-Identifier: ISC */
/*
 * The commands of execctl. Each returns the exit status.
 */
#pragma once

#include "execctl.h"

/* cmd_run.c */
extern const struct option_row run_options[], shell_options[];
int cmd_run(struct execctl *ctl);
int cmd_shell(struct execctl *ctl);

/* cmd_many.c */
int run_many(struct execctl *ctl);

/* cmd_session.c */
extern const struct option_row attach_options[], logs_options[], kill_options[],
    wait_options[];
int cmd_attach(struct execctl *ctl);
int cmd_watch(struct execctl *ctl);
int cmd_logs(struct execctl *ctl);
int cmd_wait(struct execctl *ctl);
int cmd_kill(struct execctl *ctl);

/* cmd_ps.c */
extern const struct option_row ps_options[];
int cmd_ps(struct execctl *ctl);

/* cmd_replay.c */
extern const struct option_row replay_options[];
int cmd_replay(struct execctl *ctl);

/* cmd_files.c */
extern const struct option_row ls_options[];
extern const struct option_row rm_options[], mkdir_options[];
/* Commands on paths take these if they have no others. */
extern const struct option_row sandbox_options[];
/* Connects to the server of the paths, which may be NAME:PATH or :PATH as in
 * cp, and leaves PATH. */
int connect_to_paths(struct execctl *ctl);
int cmd_ls(struct execctl *ctl);
int cmd_cat(struct execctl *ctl);
int cmd_rm(struct execctl *ctl);
int cmd_mv(struct execctl *ctl);
int cmd_mkdir(struct execctl *ctl);
/* Prints what the word of a command line can become, if it is a path of the
 * server; nothing after a failure, or if it takes long. Returns 0. */
int complete_paths(struct execctl *ctl, const char *word);

/* cmd_edit.c */
int cmd_edit(struct execctl *ctl);

/* cmd_copy.c */
extern const struct option_row copy_options[];
int cmd_cp(struct execctl *ctl);

/* cmd_environments.c */
extern const struct option_row environments_options[];
int cmd_environments(struct execctl *ctl);

/* cmd_info.c */
int cmd_info(struct execctl *ctl);
int cmd_doctor(struct execctl *ctl);
int cmd_completion(struct execctl *ctl);
int cmd_ssh_config(struct execctl *ctl);
