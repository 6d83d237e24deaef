/* SPDX-License-Identifier: ISC */
#include "frontend.h"

struct event_base *base;
struct frontend_limits config;
uint8_t scratch[SCRATCH_BYTES];
enum drain_reason frontend_drain;
bool frontend_leaves;
