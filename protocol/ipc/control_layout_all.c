/* SPDX-License-Identifier: ISC */
/*
 * All tables of layouts.
 */
#include "control_layout.h"

const struct control_layouts *const control_layouts_all[] = {
	&control_layouts_frontend, &control_layouts_runner, NULL
};
