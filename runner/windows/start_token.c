/* SPDX-License-Identifier: ISC */
/*
 * A write-restricted token: Windows checks each write twice, once with the
 * user's groups and once with the restricting SIDs alone.
 */
#include <aclapi.h>
#include <sddl.h>

#include "base.h"
#include "host_windows.h"
#include "start_windows.h"

/* cap_sids, the logon session, the sandbox user, everyone */
#define RESTRICTING_MAX (FRAMES_SIDS_MAX + 3)

struct sids {
	SID_AND_ATTRIBUTES list[RESTRICTING_MAX];
	DWORD count;
	DWORD parsed; /* the first ones are to be freed by LocalFree() */
	uint8_t everyone[SECURITY_MAX_SID_SIZE];
	TOKEN_GROUPS *groups; /* owned; holds the logon SID */
	TOKEN_USER *user;     /* owned; NULL: not one of them */
};

static void
sids_clear(struct sids *s)
{
	for (DWORD i = 0; i < s->parsed; i++)
		LocalFree(s->list[i].Sid);
	free(s->groups);
	free(s->user);
}

static bool
add_capabilities(
    struct sids *s, const struct json_value *cap_sids, struct command_error *e)
{
	for (const struct json_value *v = cap_sids->first; v; v = v->next) {
		_cleanup_free_ char *text = xstrndup(v->text.ptr, v->text.len);
		PSID sid;

		if (!ConvertStringSidToSidA(text, &sid))
			return start_failed(e, CODE_SANDBOX,
			    "a SID of cap_sids", GetLastError());
		s->list[s->count++].Sid = sid;
		s->parsed = s->count;
	}
	return true;
}

/* Returns what the caller frees, or NULL with the error in GetLastError(). */
static void *
read_token(HANDLE token, TOKEN_INFORMATION_CLASS what)
{
	DWORD bytes = 0;
	void *read;

	GetTokenInformation(token, what, NULL, 0, &bytes);
	read = xcalloc(1, bytes > 0 ? bytes : 1);
	if (bytes > 0 && GetTokenInformation(token, what, read, bytes, &bytes))
		return read;
	free(read);
	return NULL;
}

/* Without it the command could not use its own window station and pipes. */
static bool
add_logon(struct sids *s, HANDLE token, struct command_error *e)
{
	s->groups = read_token(token, TokenGroups);
	if (s->groups == NULL)
		return start_failed(
		    e, CODE_SANDBOX, "the groups of the token", GetLastError());
	for (DWORD i = 0; i < s->groups->GroupCount; i++)
		if ((s->groups->Groups[i].Attributes & SE_GROUP_LOGON_ID) ==
		    SE_GROUP_LOGON_ID) {
			s->list[s->count++].Sid = s->groups->Groups[i].Sid;
			return true;
		}
	return start_failed(e, CODE_SANDBOX, "the token has no logon session",
	    ERROR_NO_SUCH_LOGON_SESSION);
}

/*
 * A sandbox user owns nothing but his profile, and programs expect to write
 * there. To a person's own account it would open all that is theirs.
 */
static bool
add_user(struct sids *s, HANDLE token, struct command_error *e)
{
	if (!host_windows_is_sandbox_user())
		return true;
	s->user = read_token(token, TokenUser);
	if (s->user == NULL)
		return start_failed(
		    e, CODE_SANDBOX, "the user of the token", GetLastError());
	s->list[s->count++].Sid = s->user->User.Sid;
	return true;
}

static bool
add_everyone(struct sids *s, struct command_error *e)
{
	DWORD bytes = sizeof(s->everyone);

	if (!CreateWellKnownSid(WinWorldSid, NULL, s->everyone, &bytes))
		return start_failed(
		    e, CODE_SANDBOX, "the SID of everyone", GetLastError());
	s->list[s->count++].Sid = s->everyone;
	return true;
}

/*
 * What the command makes gets this ACL where no directory has one to inherit.
 * Its restricting SIDs must be in it, or it could not write to its own pipes.
 */
static bool
set_default_acl(HANDLE token, const struct sids *s, struct command_error *e)
{
	EXPLICIT_ACCESSW access[RESTRICTING_MAX] = { 0 };
	TOKEN_DEFAULT_DACL acl = { NULL };
	DWORD n = s->count - 1, err; /* not everyone */
	bool set;

	for (DWORD i = 0; i < n; i++) {
		access[i].grfAccessPermissions = GENERIC_ALL;
		access[i].grfAccessMode = GRANT_ACCESS;
		access[i].Trustee.TrusteeForm = TRUSTEE_IS_SID;
		access[i].Trustee.TrusteeType = TRUSTEE_IS_UNKNOWN;
		access[i].Trustee.ptstrName = (LPWSTR)s->list[i].Sid;
	}
	err = SetEntriesInAclW(n, access, NULL, &acl.DefaultDacl);
	if (err != ERROR_SUCCESS)
		return start_failed(e, CODE_SANDBOX, "the default ACL", err);
	set = SetTokenInformation(token, TokenDefaultDacl, &acl, sizeof(acl));
	err = GetLastError();
	LocalFree(acl.DefaultDacl);
	return set || start_failed(e, CODE_SANDBOX, "the default ACL", err);
}

static bool
restrict_token(
    HANDLE own, struct sids *s, HANDLE *token, struct command_error *e)
{
	if (!CreateRestrictedToken(own,
		DISABLE_MAX_PRIVILEGE | LUA_TOKEN | WRITE_RESTRICTED, 0, NULL,
		0, NULL, s->count, s->list, token))
		return start_failed(
		    e, CODE_SANDBOX, "CreateRestrictedToken", GetLastError());
	if (set_default_acl(*token, s, e))
		return true;
	CloseHandle(*token);
	return false;
}

bool
token_make(
    const struct json_value *cap_sids, HANDLE *token, struct command_error *e)
{
	struct sids s = { 0 };
	HANDLE own;
	bool made;

	if (!OpenProcessToken(GetCurrentProcess(),
		TOKEN_DUPLICATE | TOKEN_QUERY | TOKEN_ASSIGN_PRIMARY |
		    TOKEN_ADJUST_DEFAULT,
		&own))
		return start_failed(
		    e, CODE_SANDBOX, "OpenProcessToken", GetLastError());
	made = add_capabilities(&s, cap_sids, e) && add_logon(&s, own, e) &&
	       add_user(&s, own, e) && add_everyone(&s, e) &&
	       restrict_token(own, &s, token, e);
	CloseHandle(own);
	sids_clear(&s);
	return made;
}
