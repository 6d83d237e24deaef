/* SPDX-License-Identifier: ISC */
/*
 * Params of initialize, environment/info, environment/status and session/end,
 * and the names of the method families.
 */
#include "params.h"

const char *
method_family_name(enum method_family family)
{
	static const char *const names[] = {
		[FAMILY_INITIALIZE] = "initialize",
		[FAMILY_EXEC] = "exec",
		[FAMILY_FILESYSTEM] = "filesystem",
		[FAMILY_HTTP] = "http",
		[FAMILY_ENVIRONMENT_INFO] = "environment info",
		[FAMILY_ENVIRONMENT_STATUS] = "environment status",
		[FAMILY_ENVIRONMENT_CONFIG] = "environment config",
		[FAMILY_CAPABILITY_DISCOVERY] = "capability discovery",
		[FAMILY_SESSION] = "session",
	};

	return names[family];
}

int
params_initialize(struct rpc_message *m, union method_params *p, char *error)
{
	struct initialize_params *i = &p->initialize;
	struct args a;

	args_init(&a, &m->doc, m->params, "InitializeParams");
	i->client_name = args_string(&a, "clientName");
	i->resume =
	    args_opt_string(&a, "resumeSessionId", &i->resume_session_id);
	i->watch = args_opt_string(&a, "watchSessionId", &i->watch_session_id);
	if (i->resume && i->watch)
		args_fail(&a,
		    "resumeSessionId and watchSessionId exclude each other");
	return params_end(&a, error);
}

int
params_environment_info(
    struct rpc_message *m, union method_params *p, char *error)
{
	struct args a;

	args_none(&a, &m->doc, m->params);
	return params_end(&a, error);
}

int
params_environment_status(
    struct rpc_message *m, union method_params *p, char *error)
{
	return params_environment_info(m, p, error);
}

int
params_session_end(struct rpc_message *m, union method_params *p, char *error)
{
	return params_environment_info(m, p, error);
}
