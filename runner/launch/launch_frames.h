/* SPDX-License-Identifier: ISC */
/* The inner launcher: frames on standard handles, and a runner for each
 * spawn_request, one after the other. */
#ifndef LAUNCH_FRAMES_H
#define LAUNCH_FRAMES_H

#include "launch_text.h"

/* Serves until the input ends. Returns LAUNCH_SERVED, or one more if that ended
 * a command. The options must stay valid. */
unsigned launch_frames_serve(const struct launch_options *o);

#endif
