/* SPDX-License-Identifier: ISC */
/*
 * The messages of a program that may speak all of them.
 */
#include "control_layout.h"

const struct control_layouts *const control_layouts_all[] = {
	&control_layouts_frontend, &control_layouts_runner,
	&control_layouts_spawn, NULL
};
