/* SPDX-License-Identifier: ISC */
/* What main() says to the host on Linux. */
#pragma once

struct event_base;

/* The parent is at these descriptors, which are taken over. */
void host_linux_open(struct event_base *base, int in_fd, int out_fd);

/* The same with two named pipes, which are opened in this order: in, out. */
void host_linux_open_paths(
    struct event_base *base, const char *in, const char *out);
