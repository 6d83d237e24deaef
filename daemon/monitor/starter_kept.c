/*
 * Identities that the starter knows already.
 */
#include "starter_kept.h"

#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "queue.h"
#include "runner_start.h"
#include "starter_identity.h"
#include "util.h"

#define KEPT_MAX 64

struct kept {
	TAILQ_ENTRY(kept) link; /* kept, the one used last first */
	uint8_t key[32];	/* of all that the monitor said */
	struct identity *identity;
};

static TAILQ_HEAD(kept_list, kept) kept = TAILQ_HEAD_INITIALIZER(kept);
static size_t count;

/* The order but for the name of the session's group, and the list. False: it
 * has none. */
static bool
make_key(const struct control_start *s, int list, uint8_t key[32])
{
	struct control_start order = *s;
	EVP_MD_CTX *md;
	struct stat st;
	struct buf b;
	void *data;

	if (fstat(list, &st) < 0 || st.st_size <= 0)
		return false;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, list, 0);
	if (data == MAP_FAILED)
		return false;
	order.group[0] = '\0';
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, STARTER_START, &order);
	md = EVP_MD_CTX_new();
	EVP_DigestInit_ex(md, EVP_sha256(), NULL);
	EVP_DigestUpdate(md, b.data, b.len);
	EVP_DigestUpdate(md, data, (size_t)st.st_size);
	EVP_DigestFinal_ex(md, key, NULL);
	EVP_MD_CTX_free(md);
	buf_clear(&b);
	munmap(data, (size_t)st.st_size);
	return true;
}

static struct kept *
find(const uint8_t key[32])
{
	struct kept *k;

	TAILQ_FOREACH (k, &kept, link)
		if (memcmp(k->key, key, sizeof(k->key)) == 0)
			return k;
	return NULL;
}

static void
forget(struct kept *k)
{
	TAILQ_REMOVE(&kept, k, link);
	count--;
	identity_unref(k->identity);
	free(k);
}

static struct kept *
keep(struct identity *id, const uint8_t key[32])
{
	struct kept *k = xcalloc(1, sizeof(*k));

	if (count == KEPT_MAX)
		forget(TAILQ_LAST(&kept, kept_list));
	k->identity = id;
	memcpy(k->key, key, sizeof(k->key));
	TAILQ_INSERT_HEAD(&kept, k, link);
	count++;
	return k;
}

struct identity *
starter_kept(const struct control_start *s, int list)
{
	struct identity *id;
	uint8_t key[32];
	struct kept *k;

	if (!make_key(s, list, key))
		return NULL;
	k = find(key);
	if (k == NULL) {
		id = starter_identity(s, list);
		if (id == NULL)
			return NULL;
		k = keep(id, key);
	}
	TAILQ_REMOVE(&kept, k, link);
	TAILQ_INSERT_HEAD(&kept, k, link);
	return identity_ref(k->identity);
}

void
starter_kept_reap(void)
{
	struct kept *k;
	int status;

	TAILQ_FOREACH (k, &kept, link) {
		pid_t pid = k->identity->template.pid;

		if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid)
			runner_template_reap(pid, status);
	}
}

void
starter_kept_clear(void)
{
	while (!TAILQ_EMPTY(&kept))
		forget(TAILQ_FIRST(&kept));
}
