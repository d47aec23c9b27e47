/* What the parts of the fake driver know of each other. */
#ifndef TIDELINE_FAKE_H
#define TIDELINE_FAKE_H

#include <cuda.h>
#include "state.h"

#define MAX_ARGS 24

struct launch;
typedef CUresult (*kernel_fn)(const struct launch *);

struct launch {
	kernel_fn run;
	unsigned int gx, gy, bx, by;
	uint64_t args[MAX_ARGS]; /* as laid out for the kernel, 4 or 8 bytes used */
};

extern int64_t *state;

/* Whether so many bytes lie within one block that is alive on some card. */
int fake_alive(uint64_t at, size_t bytes);

/* The host's version of a kernel, or NULL. */
kernel_fn fake_kernel(const char *name);
CUresult fake_column_product(const struct launch *l);

#endif
