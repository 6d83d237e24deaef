/* SPDX-License-Identifier: ISC */
/*
 * The tables for a program that may use all messages.
 */
#include "control_layout.h"

const struct control_layouts *const control_layouts_all[] = {
	&control_layouts_frontend, &control_layouts_runner,
	&control_layouts_spawn, NULL
};
