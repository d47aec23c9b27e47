/*
 * As much of NVML as package monitor asks for, with made-up cards, for its
 * test. The layouts are those of the library's own interface.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	unsigned long long total, free, used;
} memory;
typedef struct {
	unsigned int gpu, memory;
} utilization;
typedef struct {
	char legacy[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
} pci;
typedef struct {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int instance, compute;
} process;

static int cards(void)
{
	const char *s = getenv("FAKE_NVML_CARDS");

	return s ? atoi(s) : 1;
}

int nvmlInit_v2(void) { return cards() < 0 ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return r == 9 ? "Driver Not Loaded" : "Error of the fake"; }

int nvmlSystemGetDriverVersion(char *s, unsigned int n)
{
	snprintf(s, n, "550.54.15");
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = (unsigned int)cards();
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **d)
{
	*d = (void *)(size_t)(i + 1);
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *d, memory *m)
{
	m->total = 16ull << 30;
	m->used = (unsigned long long)(size_t)d << 30;
	m->free = m->total - m->used;
	return 0;
}

int nvmlDeviceGetName(void *d, char *s, unsigned int n)
{
	snprintf(s, n, "Fake Card %zu", (size_t)d - 1);
	return 0;
}

int nvmlDeviceGetUUID(void *d, char *s, unsigned int n)
{
	snprintf(s, n, "GPU-fake-%zu", (size_t)d - 1);
	return 0;
}

int nvmlDeviceGetPciInfo_v3(void *d, pci *p)
{
	memset(p, 0, sizeof *p);
	p->bus = 0x3a + (unsigned int)(size_t)d;
	return 0;
}

int nvmlDeviceGetUtilizationRates(void *d, utilization *u)
{
	if ((size_t)d == 2)
		return 3; /* not supported */
	u->gpu = 57;
	u->memory = 12;
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned int *n, process *list)
{
	const char *self = getenv("FAKE_NVML_PID");

	if (*n < 2) {
		*n = 2;
		return 7; /* insufficient size */
	}
	(void)d;
	*n = 2;
	list[0] = (process){self ? (unsigned int)atoi(self) : 1, 300ull << 20, 0, 0};
	list[1] = (process){4000000000u, ~0ull, 0, 0};
	return 0;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned int *n, process *list)
{
	(void)d, (void)n, (void)list;
	return 3;
}
