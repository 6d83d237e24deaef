#!/bin/bash
# SPDX-License-Identifier: ISC
#
# ACTIONS_RUNNER_CONTAINER_HOOKS of a self-hosted runner of GitHub: jobs with
# `container:` run on a host with execd and not in a container. The page is
# https://docs.github.com/en/actions/how-tos/managing-self-hosted-runners/customizing-the-containers-used-by-jobs
#
# The runner tells in JSON what is to be done. Each step gets the runner's files
# (_temp, _actions), and what it wrote to GITHUB_OUTPUT and the like comes back.
# The paths of the container are those of the job's directory on the host.
set -euo pipefail

fail() { # A line that the runner shows at the job.
	echo "::error title=execd::$*"
	exit 1
}

input=$(cat)
value() {
	jq -r "$1" <<<"$input"
}
command=$(value .command) key=$(value .state.key) work=$(value .state.work)

# The step as a script for the host: its directory, its variables, its command.
# A variable whose name the shell does not take, as INPUT_FETCH-DEPTH, comes by env(1).
# shellcheck disable=SC2016
step='.state.dir as $dir
| def there: gsub("/github/workflow"; $dir + "/_temp/_github_workflow") | gsub("/github/home"; $dir + "/_temp/_github_home")
	| gsub("/__w"; $dir);
def words: map(there | @sh) | join(" ");
.args | (.environmentVariables // {} | to_entries) as $all
| ($all | map(select(.key | test("^[A-Za-z_][A-Za-z0-9_]*$")))) as $plain
| (.prependPath // [] | if type == "array" then . else [.] end | map(select(. != ""))) as $path
| "find _temp -maxdepth 1 -name \("*.sh" | @sh) -exec sed -i \("s#/__w#" + $dir + "#g" | @sh) {} +",
($plain[] | "export \(.key)=\(.value | tostring | there | @sh)"),
($path | select(length > 0) | "export PATH=\(join(":") | there | @sh):\"$PATH\""),
([.workingDirectory] | "mkdir -p \(words) && cd \(words) || exit"),
"exec env \($all - $plain | map("\(.key)=\(.value)") | words) \([.entryPoint | sub("^/__e/.*/"; "")] + (.entryPointArgs // []) | words) </dev/null"'

run_step() {
	local status=0 parts=(_temp)
	[ ! -d "$work/_actions" ] || parts+=(_actions)
	tar -C "$work" --exclude=_runner_hook_responses -c "${parts[@]}" | execd-step "$key" tar -x || return
	# The runner signals this process alone. In the background the step is no hindrance.
	execd-step "$key" bash <<<"$(value "$step")" &
	pid=$!
	trap 'kill "$pid"' HUP INT TERM
	while wait "$pid" && status=0 || status=$?; kill -0 "$pid" 2>/dev/null; do :; done
	trap - HUP INT TERM
	execd-step "$key" tar -c _temp/_runner_file_commands | tar -C "$work" -x || return 125
	return $status
}

case $command in
prepare_job)
	[ "$(value '.args.services // [] | length')" = 0 ] || fail "This runner has no service containers."
	key=github-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	work=$(value '.args.container.systemMountVolumes[] | select(.targetVolumePath == "/__w").sourceVolumePath')
	dir=$(execd-step --begin "$key") || fail "There is no host for this job (status $?)."
	jq -n --arg key "$key" --arg work "$work" --arg dir "$dir" '{state: $ARGS.named, isAlpine: false}' >"$(value .responseFile)"
	;;
run_script_step)
	status=0
	run_step || status=$?
	case $status in 125 | 254 | 255) fail "The host of this job failed (status $status), not the step." ;; esac
	exit $status
	;;
cleanup_job) [ "$key" = null ] || execd-step --end "$key" ;;
*) fail "This runner has no containers: $command." ;;
esac
