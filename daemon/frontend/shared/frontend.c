/* SPDX-License-Identifier: ISC */
/*
 * State that the whole front-end shares.
 */
#include "frontend.h"

struct event_base *base;
struct frontend_limits config;
uint8_t scratch[SCRATCH_BYTES];
enum drain_reason frontend_drain;
bool frontend_leaves;
