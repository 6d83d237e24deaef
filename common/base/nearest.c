/* SPDX-License-Identifier: ISC */
#include "nearest.h"

#include "base.h"

#define NAME_MAX_LEN 32
#define EDITS_MAX    2

static unsigned int
smaller(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* The distance of Damerau and Levenshtein, in which no letter is edited twice:
 * row i has the distances of the first i letters of a to the beginnings of
 * b. */
static unsigned int
distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];

	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			d[i][j] = (unsigned int)(i == 0 ? j : i);
			if (i == 0 || j == 0)
				continue;
			d[i][j] = smaller(smaller(d[i - 1][j], d[i][j - 1]) + 1,
			    d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

void
nearest_try(struct nearest *n, const char *name)
{
	size_t given = strlen(n->given), len = strlen(name);
	unsigned int edits;

	if (given > NAME_MAX_LEN || len > NAME_MAX_LEN)
		return;
	edits = distance(n->given, given, name, len);
	/* A short word that has nothing of the name is not meant. */
	if (edits > EDITS_MAX || 2 * edits > len ||
	    (n->name != NULL && edits >= n->edits))
		return;
	n->name = name;
	n->edits = edits;
}
