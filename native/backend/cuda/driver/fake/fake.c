/*
 * A CUDA driver on host memory, for tests on machines without a card.
 *
 * Work is put off as long as the rules of the API allow: a stream's queue runs
 * when something waits for it, and then no further than it must. A copy or a
 * kernel that was not ordered after what it depends on therefore reads what
 * was there before, and the result is wrong every time, not once in a while.
 *
 * Kernels are those of package ptx, by name: the module's text says which
 * there are and what they take, kernels.c computes them. Every address is
 * checked against the blocks that are alive.
 *
 * TIDELINE_FAKE_STATE names a file of STATE_COUNT 64-bit numbers, see state.h;
 * without it they begin at 0. TIDELINE_FAKE sets some of them at start, as
 * "devices=1 memory=268435456 init=100".
 */
#include "fake.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEVICES 8
#define ARENA ((size_t)1 << 38)

static int64_t without_file[STATE_COUNT];
int64_t *state = without_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum op_kind { OP_COPY, OP_FILL8, OP_FILL32, OP_KERNEL, OP_RECORD, OP_WAIT };

struct op {
	struct op *next;
	enum op_kind kind;
	uint64_t seq;
	int64_t submitted, nanos;
	char *dst;
	const char *src;
	size_t bytes;
	unsigned int value;
	struct launch launch;
	struct CUevent_st *event;
	struct CUstream_st *other;
	uint64_t other_seq;
};

struct CUstream_st {
	struct CUctx_st *ctx;
	struct CUstream_st *next;
	struct op *head, *tail;
	uint64_t queued, done;
	int64_t now; /* when its last work ended, in nanoseconds */
};

struct CUevent_st {
	struct CUctx_st *ctx;
	struct CUevent_st *next;
	struct CUstream_st *stream;
	uint64_t seq;
	int64_t time;
	int dead;
};

struct block {
	struct block *next;
	char *at;
	size_t bytes;
};

struct CUfunc_st {
	struct CUfunc_st *next;
	char name[64];
	char kinds[MAX_ARGS]; /* 8 or 4 bytes */
	int args;
	kernel_fn run;
};

struct CUmod_st {
	struct CUctx_st *ctx;
	struct CUmod_st *next;
	struct CUfunc_st *functions;
};

struct CUctx_st {
	int device;
	CUresult sticky;
	struct CUctx_st *next;
	struct CUstream_st *streams;
	struct CUstream_st null; /* the default stream */
	struct CUevent_st *events;
	struct CUmod_st *modules;
	struct block *blocks, *host;
};

static struct {
	char *arena;
	size_t used;
} cards[MAX_DEVICES];

static struct CUctx_st *contexts;
static __thread struct CUctx_st *current;
static int64_t began;
static int initialised;

static void count(int what, int64_t n) { __atomic_add_fetch(&state[what], n, __ATOMIC_SEQ_CST); }

static int64_t setting(int what, int64_t otherwise)
{
	int64_t n = __atomic_load_n(&state[what], __ATOMIC_SEQ_CST);

	return n ? n : otherwise;
}

/* Counts a setting down; true when it was its turn. */
static int turn(int what)
{
	if (__atomic_load_n(&state[what], __ATOMIC_SEQ_CST) <= 0)
		return 0;
	return __atomic_sub_fetch(&state[what], 1, __ATOMIC_SEQ_CST) == 0;
}

static int devices(void)
{
	int64_t n = setting(SET_DEVICES, 1);

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (int)n;
}

static int64_t total(void) { return setting(SET_MEMORY, 256 << 20); }

static int64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - began;
}

/* Takes bytes off a card, or gives them back; false when it has not got them. */
static int take(int device, int64_t bytes)
{
	int64_t *used = &state[USED_BYTES + device];
	int64_t now = __atomic_add_fetch(used, bytes, __ATOMIC_SEQ_CST);

	if (bytes > 0 && now + setting(SET_HELD, 0) > total()) {
		__atomic_sub_fetch(used, bytes, __ATOMIC_SEQ_CST);
		return 0;
	}
	return 1;
}

static void settings_from_environment(void)
{
	static const struct {
		const char *name;
		int what;
	} known[] = {
		{"devices", SET_DEVICES}, {"memory", SET_MEMORY}, {"context", SET_CONTEXT}, {"held", SET_HELD},
		{"init", SET_INIT_ERROR}, {"alloc", SET_ALLOC_FAILS}, {"host", SET_HOST_FAILS},
		{"launch", SET_LAUNCH_FAILS}, {"lost", SET_LOST}, {"capability", SET_CAPABILITY},
	};
	const char *s = getenv("TIDELINE_FAKE");
	char name[32];
	long long n;
	int used;
	size_t i;

	while (s && sscanf(s, " %31[a-z]=%lld%n", name, &n, &used) == 2) {
		for (i = 0; i < sizeof known / sizeof known[0]; i++)
			if (!strcmp(name, known[i].name))
				state[known[i].what] = n;
		s += used;
	}
}

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("TIDELINE_FAKE_STATE");
	int fd = file ? open(file, O_RDWR) : -1;

	if (fd >= 0) {
		void *p = mmap(NULL, STATE_COUNT * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (p != MAP_FAILED)
			state = p;
		close(fd);
	}
	settings_from_environment();
	began = clock_now();
}

/* ---- blocks ---- */

static char *arena(int device)
{
	if (!cards[device].arena) {
		void *p = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		cards[device].arena = p == MAP_FAILED ? NULL : p;
	}
	return cards[device].arena;
}

static int within(struct block *list, const char *at, size_t bytes)
{
	for (; list; list = list->next)
		if (at >= list->at && bytes <= list->bytes && (size_t)(at - list->at) <= list->bytes - bytes)
			return 1;
	return 0;
}

int fake_alive(uint64_t at, size_t bytes)
{
	struct CUctx_st *c;

	for (c = contexts; c; c = c->next)
		if (within(c->blocks, (const char *)at, bytes))
			return 1;
	return 0;
}

static int pinned(const void *p)
{
	struct CUctx_st *c;

	for (c = contexts; c; c = c->next)
		if (within(c->host, p, 1))
			return 1;
	return 0;
}

static void drop_block(struct CUctx_st *ctx, struct block *b)
{
	madvise(b->at, b->bytes, MADV_DONTNEED);
	take(ctx->device, -(int64_t)b->bytes);
	count(LIVE_BLOCKS, -1);
	count(LIVE_BYTES, -(int64_t)b->bytes);
	free(b);
}

static void drop_host(struct block *b)
{
	count(LIVE_HOST_BLOCKS, -1);
	count(LIVE_HOST_BYTES, -(int64_t)b->bytes);
	munmap(b->at, b->bytes);
	free(b);
}

/* ---- queues ---- */

static void run_until(struct CUstream_st *s, uint64_t seq);

static CUresult perform(struct CUstream_st *s, struct op *o)
{
	size_t i;

	switch (o->kind) {
	case OP_COPY:
		memmove(o->dst, o->src, o->bytes);
		return CUDA_SUCCESS;
	case OP_FILL8:
		memset(o->dst, (int)o->value, o->bytes);
		return CUDA_SUCCESS;
	case OP_FILL32:
		for (i = 0; i + 4 <= o->bytes; i += 4)
			memcpy(o->dst + i, &o->value, 4);
		return CUDA_SUCCESS;
	case OP_KERNEL:
		if (turn(SET_LAUNCH_FAILS))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		return o->launch.run(&o->launch);
	case OP_RECORD:
		if (o->event->stream == s && o->event->seq == o->seq)
			o->event->time = s->now;
		return CUDA_SUCCESS;
	case OP_WAIT:
		run_until(o->other, o->other_seq);
		if (o->other->now > s->now)
			s->now = o->other->now;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_UNKNOWN;
}

static void run_until(struct CUstream_st *s, uint64_t seq)
{
	while (s->done < seq && s->head) {
		struct op *o = s->head;
		CUresult r;

		s->head = o->next;
		if (!s->head)
			s->tail = NULL;
		if (o->submitted > s->now)
			s->now = o->submitted;
		s->now += o->nanos;
		r = s->ctx->sticky ? CUDA_SUCCESS : perform(s, o);
		if (o->kind == OP_WAIT && o->other->now > s->now)
			s->now = o->other->now;
		s->done = o->seq;
		if (r != CUDA_SUCCESS && !s->ctx->sticky)
			s->ctx->sticky = r;
		free(o);
	}
}

static void run_all(struct CUctx_st *ctx)
{
	struct CUstream_st *s;

	run_until(&ctx->null, ctx->null.queued);
	for (s = ctx->streams; s; s = s->next)
		run_until(s, s->queued);
}

/* Before something is destroyed that work of any context may wait for. */
static void run_everything(void)
{
	struct CUctx_st *c;

	for (c = contexts; c; c = c->next)
		run_all(c);
}

static struct op *queue(struct CUstream_st *s, enum op_kind kind, int64_t nanos)
{
	struct op *o = calloc(1, sizeof *o);

	o->kind = kind;
	o->seq = ++s->queued;
	o->submitted = clock_now();
	o->nanos = nanos;
	if (s->tail)
		s->tail->next = o;
	else
		s->head = o;
	s->tail = o;
	return o;
}

/* ---- entering and leaving ---- */

#define ENTER_DRIVER()                                                      \
	do {                                                                \
		if (!initialised)                                           \
			return CUDA_ERROR_NOT_INITIALIZED;                  \
		pthread_mutex_lock(&lock);                                  \
	} while (0)

#define LEAVE(r)                                                            \
	do {                                                                \
		CUresult leaving = (r);                                     \
		pthread_mutex_unlock(&lock);                                \
		return leaving;                                             \
	} while (0)

#define ENTER()                                                             \
	struct CUctx_st *ctx = current;                                     \
	ENTER_DRIVER();                                                     \
	if (!ctx || !known(ctx))                                            \
		LEAVE(CUDA_ERROR_INVALID_CONTEXT);                          \
	if (turn(SET_LOST))                                                 \
		ctx->sticky = CUDA_ERROR_CONTEXT_IS_DESTROYED;              \
	if (ctx->sticky)                                                    \
	LEAVE(ctx->sticky)

static int known(struct CUctx_st *ctx)
{
	struct CUctx_st *c;

	for (c = contexts; c; c = c->next)
		if (c == ctx)
			return 1;
	return 0;
}

static struct CUstream_st *stream_of(struct CUctx_st *ctx, CUstream s)
{
	struct CUstream_st *i;

	if (!s)
		return &ctx->null;
	for (i = ctx->streams; i; i = i->next)
		if (i == s)
			return i;
	return NULL;
}

#define STREAM(name, handle)                                                \
	struct CUstream_st *name = stream_of(ctx, handle);                  \
	if (!name)                                                          \
	LEAVE(CUDA_ERROR_INVALID_HANDLE)

/* ---- driver and devices ---- */

CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (setting(SET_INIT_ERROR, 0))
		return (CUresult)setting(SET_INIT_ERROR, 0);
	initialised = 1;
	return devices() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *v)
{
	*v = 12090;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult r, const char **s)
{
	*s = r == CUDA_ERROR_NO_DEVICE ? "no CUDA-capable device is detected" : "an error of the fake driver";
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
	*n = devices();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int i)
{
	*d = i;
	return i >= 0 && i < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice d)
{
	snprintf(name, (size_t)len, "Fake GPU %d", d);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice d)
{
	(void)d;
	*bytes = (size_t)total();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	int cc = (int)setting(SET_CAPABILITY, 75);

	switch (a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = cc / 10; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = cc % 10; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 40; break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *v = 1590000; break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *v = 5001000; break;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *v = 256; break;
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: *v = 0; break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *v = 0x3b + d; break;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: *v = 0; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return d >= 0 && d < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
	*can = a != b;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice d)
{
	struct CUctx_st *ctx;

	(void)flags;
	ENTER_DRIVER();
	if (d < 0 || d >= devices())
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	if (!arena(d) || !take(d, setting(SET_CONTEXT, 8 << 20)))
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	ctx = calloc(1, sizeof *ctx);
	ctx->device = d;
	ctx->null.ctx = ctx;
	ctx->next = contexts;
	contexts = ctx;
	current = ctx;
	count(LIVE_CONTEXTS, 1);
	*out = ctx;
	LEAVE(CUDA_SUCCESS);
}

#define EACH(type, list, left, body)                                        \
	while (list) {                                                      \
		type *it = list;                                            \
		list = it->next;                                            \
		if (!ctx->sticky)                                           \
			count(left, 1);                                     \
		body;                                                       \
	}

static void unload(struct CUmod_st *m)
{
	while (m->functions) {
		struct CUfunc_st *f = m->functions;

		m->functions = f->next;
		free(f);
	}
	count(LIVE_MODULES, -1);
	free(m);
}

/* Destroying a context gives back all that it held, as a real driver does. */
CUresult cuCtxDestroy(CUcontext ctx)
{
	struct CUctx_st **p;

	ENTER_DRIVER();
	if (!known(ctx))
		LEAVE(CUDA_ERROR_INVALID_CONTEXT);
	run_everything();
	while (ctx->events) {
		struct CUevent_st *e = ctx->events;

		ctx->events = e->next;
		if (!e->dead) {
			count(LIVE_EVENTS, -1);
			if (!ctx->sticky)
				count(LEFT_EVENTS, 1);
		}
		free(e);
	}
	EACH(struct CUstream_st, ctx->streams, LEFT_STREAMS, (count(LIVE_STREAMS, -1), free(it)));
	EACH(struct CUmod_st, ctx->modules, LEFT_MODULES, unload(it));
	EACH(struct block, ctx->blocks, LEFT_BLOCKS, drop_block(ctx, it));
	EACH(struct block, ctx->host, LEFT_HOST_BLOCKS, drop_host(it));
	for (p = &contexts; *p != ctx; p = &(*p)->next)
		;
	*p = ctx->next;
	take(ctx->device, -setting(SET_CONTEXT, 8 << 20));
	count(LIVE_CONTEXTS, -1);
	if (current == ctx)
		current = NULL;
	free(ctx);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	ENTER_DRIVER();
	if (ctx && !known(ctx))
		LEAVE(CUDA_ERROR_INVALID_CONTEXT);
	current = ctx;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	ENTER();
	run_all(ctx);
	LEAVE(ctx->sticky);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	(void)flags;
	ENTER();
	LEAVE(known(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- memory ---- */

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	ENTER();
	*total_bytes = (size_t)total();
	*free_bytes = (size_t)(total() - setting(SET_HELD, 0) - state[USED_BYTES + ctx->device]);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
	struct block *b;
	size_t size = (bytes + 511) & ~(size_t)511;

	ENTER();
	count(DID_ALLOC, 1);
	if (!bytes)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (turn(SET_ALLOC_FAILS) || cards[ctx->device].used + size > ARENA || !take(ctx->device, (int64_t)bytes))
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	b = calloc(1, sizeof *b);
	b->at = arena(ctx->device) + cards[ctx->device].used;
	b->bytes = bytes;
	b->next = ctx->blocks;
	ctx->blocks = b;
	cards[ctx->device].used += size;
	count(LIVE_BLOCKS, 1);
	count(LIVE_BYTES, (int64_t)bytes);
	*out = (CUdeviceptr)b->at;
	LEAVE(CUDA_SUCCESS);
}

static struct block *unlink_block(struct block **list, const char *at)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->at == at) {
			struct block *b = *list;

			*list = b->next;
			return b;
		}
	return NULL;
}

/* A real driver waits for the device before it frees. */
CUresult cuMemFree(CUdeviceptr p)
{
	struct block *b;

	ENTER();
	run_all(ctx);
	b = unlink_block(&ctx->blocks, (const char *)p);
	if (!b)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	drop_block(ctx, b);
	LEAVE(ctx->sticky);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	struct block *b;
	void *p;

	(void)flags;
	ENTER();
	if (!bytes)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (turn(SET_HOST_FAILS))
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	b = calloc(1, sizeof *b);
	b->at = p;
	b->bytes = bytes;
	b->next = ctx->host;
	ctx->host = b;
	count(LIVE_HOST_BLOCKS, 1);
	count(LIVE_HOST_BYTES, (int64_t)bytes);
	*out = p;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemFreeHost(void *p)
{
	struct block *b;

	ENTER();
	run_all(ctx);
	b = unlink_block(&ctx->host, p);
	if (!b)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	drop_host(b);
	LEAVE(CUDA_SUCCESS);
}

static int64_t copy_nanos(size_t bytes, int slow) { return 5000 + (int64_t)bytes / (slow ? 5 : 12); }

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t n, CUstream handle)
{
	int fast = 0;
	struct op *o;

	ENTER();
	STREAM(s, handle);
	if (!fake_alive(dst, n))
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	fast = pinned(src);
	o = queue(s, OP_COPY, copy_nanos(n, !fast));
	o->dst = (char *)dst;
	o->src = src;
	o->bytes = n;
	count(DID_H2D, 1);
	if (!fast) /* the driver has copied the source before it returns */
		run_until(s, s->queued);
	LEAVE(ctx->sticky);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t n, CUstream handle)
{
	int fast = 0;
	struct op *o;

	ENTER();
	STREAM(s, handle);
	if (!fake_alive(src, n))
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	fast = pinned(dst);
	o = queue(s, OP_COPY, copy_nanos(n, !fast));
	o->dst = dst;
	o->src = (const char *)src;
	o->bytes = n;
	count(DID_D2H, 1);
	if (!fast)
		run_until(s, s->queued);
	LEAVE(ctx->sticky);
}

static CUresult local_copy(struct CUctx_st *ctx, CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream handle)
{
	struct CUstream_st *s = stream_of(ctx, handle);
	struct op *o;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!fake_alive(src, n) || !fake_alive(dst, n))
		return CUDA_ERROR_INVALID_VALUE;
	o = queue(s, OP_COPY, 2000 + (int64_t)n / 100);
	o->dst = (char *)dst;
	o->src = (const char *)src;
	o->bytes = n;
	count(DID_D2D, 1);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream handle)
{
	ENTER();
	LEAVE(local_copy(ctx, dst, src, n, handle));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n, CUstream handle)
{
	ENTER();
	LEAVE(known(to) && known(from) ? local_copy(ctx, dst, src, n, handle) : CUDA_ERROR_INVALID_CONTEXT);
}

static CUresult fill(struct CUctx_st *ctx, enum op_kind kind, CUdeviceptr dst, unsigned int v, size_t bytes, CUstream handle)
{
	struct CUstream_st *s = stream_of(ctx, handle);
	struct op *o;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!fake_alive(dst, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	o = queue(s, kind, 2000 + (int64_t)bytes / 200);
	o->dst = (char *)dst;
	o->value = v;
	o->bytes = bytes;
	count(DID_FILL, 1);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char v, size_t n, CUstream handle)
{
	ENTER();
	LEAVE(fill(ctx, OP_FILL8, dst, v, n, handle));
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int v, size_t n, CUstream handle)
{
	ENTER();
	LEAVE(fill(ctx, OP_FILL32, dst, v, 4 * n, handle));
}

/* ---- streams and events ---- */

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	struct CUstream_st *s;

	(void)flags;
	ENTER();
	s = calloc(1, sizeof *s);
	s->ctx = ctx;
	s->next = ctx->streams;
	ctx->streams = s;
	count(LIVE_STREAMS, 1);
	*out = s;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream handle)
{
	struct CUstream_st **p;

	ENTER();
	run_everything();
	for (p = &ctx->streams; *p && *p != handle; p = &(*p)->next)
		;
	if (!*p)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	*p = handle->next;
	count(LIVE_STREAMS, -1);
	free(handle);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream handle)
{
	ENTER();
	STREAM(s, handle);
	run_until(s, s->queued);
	LEAVE(ctx->sticky);
}

static struct CUevent_st *event_of(CUevent handle)
{
	struct CUctx_st *c;
	struct CUevent_st *e;

	for (c = contexts; c; c = c->next)
		for (e = c->events; e; e = e->next)
			if (e == handle && !e->dead)
				return e;
	return NULL;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	struct op *o;
	struct CUevent_st *e;

	(void)flags;
	ENTER();
	STREAM(s, handle);
	e = event_of(event);
	if (!e)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	if (!e->stream)
		LEAVE(CUDA_SUCCESS); /* never recorded: nothing to wait for */
	o = queue(s, OP_WAIT, 0);
	o->other = e->stream;
	o->other_seq = e->seq;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct CUevent_st *e;

	(void)flags;
	ENTER();
	e = calloc(1, sizeof *e);
	e->ctx = ctx;
	e->next = ctx->events;
	ctx->events = e;
	count(LIVE_EVENTS, 1);
	*out = e;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event)
{
	struct CUevent_st *e;

	ENTER();
	e = event_of(event);
	if (!e)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	e->dead = 1; /* work in the queue may still name it */
	count(LIVE_EVENTS, -1);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	struct op *o;
	struct CUevent_st *e;

	ENTER();
	STREAM(s, handle);
	e = event_of(event);
	if (!e || e->ctx != ctx)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	o = queue(s, OP_RECORD, 0);
	o->event = e;
	e->stream = s;
	e->seq = o->seq;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent event)
{
	struct CUevent_st *e;

	ENTER();
	e = event_of(event);
	if (!e)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	if (e->stream)
		run_until(e->stream, e->seq);
	LEAVE(ctx->sticky);
}

CUresult cuEventQuery(CUevent event)
{
	struct CUevent_st *e;

	ENTER();
	e = event_of(event);
	if (!e)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	LEAVE(!e->stream || e->stream->done >= e->seq ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	struct CUevent_st *a, *b;

	ENTER();
	a = event_of(from);
	b = event_of(to);
	if (!a || !b || !a->stream || !b->stream)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	if (a->stream->done < a->seq || b->stream->done < b->seq)
		LEAVE(CUDA_ERROR_NOT_READY);
	*ms = (float)((double)(b->time - a->time) / 1e6);
	LEAVE(CUDA_SUCCESS);
}

/* ---- modules ---- */

/* Reads the entry points and their parameters from a module's text. */
static int read_text(struct CUmod_st *m, const char *s)
{
	static const char entry[] = ".visible .entry ";

	while ((s = strstr(s, entry))) {
		struct CUfunc_st *f = calloc(1, sizeof *f);
		const char *end, *p;

		f->next = m->functions;
		m->functions = f;
		s += sizeof entry - 1;
		end = strchr(s, ')');
		if (!end || sscanf(s, "%63[a-z0-9_A-Z]", f->name) != 1)
			return 0;
		for (p = s; (p = strstr(p, ".param .")) && p < end; p += 8)
			if (f->args < MAX_ARGS)
				f->kinds[f->args++] = p[8] == 'u' && p[9] == '6' ? 8 : 4;
		f->run = fake_kernel(f->name);
		s = end;
	}
	return m->functions != NULL;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	struct CUmod_st *m;

	ENTER();
	m = calloc(1, sizeof *m);
	m->ctx = ctx;
	count(LIVE_MODULES, 1);
	if (!strstr(image, ".version ") || !read_text(m, image)) {
		unload(m);
		LEAVE(CUDA_ERROR_INVALID_PTX);
	}
	m->next = ctx->modules;
	ctx->modules = m;
	*out = m;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule m)
{
	struct CUmod_st **p;

	ENTER();
	run_all(ctx);
	for (p = &ctx->modules; *p && *p != m; p = &(*p)->next)
		;
	if (!*p)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	*p = m->next;
	unload(m);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
	struct CUfunc_st *f;

	ENTER();
	for (f = m->functions; f; f = f->next)
		if (!strcmp(f->name, name)) {
			*out = f;
			LEAVE(CUDA_SUCCESS);
		}
	LEAVE(CUDA_ERROR_NOT_FOUND);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			unsigned int bz, unsigned int shared, CUstream handle, void **params, void **extra)
{
	struct op *o;
	int i;

	(void)extra;
	ENTER();
	STREAM(s, handle);
	if (!gx || !gy || gz != 1 || gy > 65535 || !bx || !by || bz != 1 || bx * by > 1024 || shared)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	count(DID_LAUNCH, 1);
	if (!f->run) {
		count(DID_SKIP, 1);
		fprintf(stderr, "fake driver: kernel %s is not emulated, skipped\n", f->name);
		LEAVE(CUDA_SUCCESS);
	}
	o = queue(s, OP_KERNEL, 3000);
	o->launch.run = f->run;
	o->launch.gx = gx, o->launch.gy = gy, o->launch.bx = bx, o->launch.by = by;
	for (i = 0; i < f->args; i++)
		memcpy(&o->launch.args[i], params[i], (size_t)f->kinds[i]);
	LEAVE(CUDA_SUCCESS);
}

/* ---- cuBLAS, as much as is used: products in column order ---- */

struct fake_blas {
	CUstream stream;
};

int cublasCreate_v2(struct fake_blas **h)
{
	*h = calloc(1, sizeof **h);
	return *h ? 0 : 3;
}

int cublasDestroy_v2(struct fake_blas *h)
{
	free(h);
	return 0;
}

int cublasSetStream_v2(struct fake_blas *h, CUstream s)
{
	h->stream = s;
	return 0;
}

static CUresult queue_product(struct fake_blas *h, const struct launch *l)
{
	struct op *o;

	ENTER();
	STREAM(s, h->stream);
	o = queue(s, OP_KERNEL, 2000);
	o->launch = *l;
	count(DID_PRODUCT, 1);
	LEAVE(CUDA_SUCCESS);
}

int cublasSgemm_v2(struct fake_blas *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
		   const float *b, int ldb, const float *beta, float *c, int ldc)
{
	struct launch l = {.run = fake_column_product};

	if (*alpha != 1 || (*beta != 0 && *beta != 1))
		return 7;
	l.args[0] = (uint64_t)a, l.args[1] = (uint64_t)b, l.args[2] = (uint64_t)c;
	l.args[3] = (uint64_t)m, l.args[4] = (uint64_t)n, l.args[5] = (uint64_t)k;
	l.args[6] = (uint64_t)lda, l.args[7] = (uint64_t)ldb, l.args[8] = (uint64_t)ldc;
	l.args[9] = (uint64_t)(ta != 0), l.args[10] = (uint64_t)(tb != 0), l.args[11] = *beta != 0;
	return queue_product(h, &l) == CUDA_SUCCESS ? 0 : 13;
}
