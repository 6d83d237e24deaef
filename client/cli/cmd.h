/* SPDX-License-Identifier: ISC */
/*
 * The commands of execctl. Each returns the exit status.
 */
#ifndef CMD_H
#define CMD_H

#include "ctl.h"

/* cmd_run.c */
extern const struct option_row run_options[], shell_options[];
int cmd_run(struct ctl *ctl);
int cmd_shell(struct ctl *ctl);

/* cmd_session.c */
extern const struct option_row attach_options[], logs_options[], kill_options[];
int cmd_attach(struct ctl *ctl);
int cmd_watch(struct ctl *ctl);
int cmd_logs(struct ctl *ctl);
int cmd_wait(struct ctl *ctl);
int cmd_kill(struct ctl *ctl);
int cmd_ps(struct ctl *ctl);

/* cmd_files.c */
extern const struct option_row ls_options[];
extern const struct option_row cat_options[];
int cmd_ls(struct ctl *ctl);
int cmd_cat(struct ctl *ctl);

/* cmd_copy.c */
extern const struct option_row copy_options[];
int cmd_cp(struct ctl *ctl);

/* cmd_http.c */
extern const struct option_row http_options[];
int cmd_http(struct ctl *ctl);

/* cmd_info.c */
extern const struct option_row environments_options[];
int cmd_info(struct ctl *ctl);
int cmd_doctor(struct ctl *ctl);
int cmd_environments(struct ctl *ctl);
int cmd_completion(struct ctl *ctl);

#endif
