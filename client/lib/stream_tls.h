/* SPDX-License-Identifier: ISC */
/*
 * TLS of a client's stream, with OpenSSL. Only stream.c includes it besides
 * stream_tls.c.
 */
#ifndef STREAM_TLS_H
#define STREAM_TLS_H

#include "stream.h"

ssize_t stream_tls_read(struct stream *s, void *p, size_t n);
ssize_t stream_tls_write(struct stream *s, const void *p, size_t n);
bool stream_tls_has_input(const struct stream *s);
void stream_tls_close(struct stream *s);
void stream_tls_config_clear(struct stream_config *config);

#endif
